"""Run folder of HELM: per_instance_stats.json, with run_spec.json, scenario_state.json and stats.json beside it.

The scores are the statistics that judge an answer (`tracker.ingest.formats.helm.metrics`); counts, costs and
probabilities that HELM keeps beside them are passed over. Of the splits the test split is taken, unless the user names
others. Perturbed prompts are a run of their own; training trials are trials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracker.ingest.files.json_values import first_bytes
from tracker.ingest.files.mismatch import Mismatch
from tracker.ingest.formats.helm.run_folder import HelmRunFolder
from tracker.ingest.formats.helm.states import ScenarioStates
from tracker.ingest.formats.helm.statistics import InstanceStatistics
from tracker.ingest.measurement import Measurement, ReadOptions

SPECIFICITY = 30
RECOGNIZED_BY = "per_instance_stats.json in a run folder"
SUPPORTS_SPLITS = True
START = re.compile(rb'\s*\[\s*\{\s*"(?:instance_id|perturbation|train_trial_index|stats)"\s*:')


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Why the file is no per_instance_stats.json of HELM."""
    if path.name.removesuffix(".gz") != "per_instance_stats.json":
        return "the name is not per_instance_stats.json"
    data = first_bytes(path, 4096)
    if isinstance(data, str):
        return data
    return None if START.match(data) else Mismatch('it does not start with [{"instance_id":', 1 / 2)


def companion_files(path: Path) -> Sequence[Path]:
    """The other files of the run."""
    return HelmRunFolder(path, ReadOptions()).companion_files


def harness_name(path: Path) -> str | None:
    """The program; its files do not say which version."""
    return "helm"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | str]:
    """The prompts and answers of scenario_state.json, then the scores.

    Raises:
        BadInputError: a file of the run is not sound, or nothing says which model it is of.
    """
    folder = HelmRunFolder(path, options)
    yield from folder.warnings()
    states = ScenarioStates(folder)
    yield from states.blocks()
    yield from InstanceStatistics(folder, states).blocks()
