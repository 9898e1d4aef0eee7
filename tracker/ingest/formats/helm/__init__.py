"""Run folder of HELM: per_instance_stats.json, with run_spec.json, scenario_state.json and stats.json beside it.

Scores are the statistics that evaluate an answer (`tracker.ingest.formats.helm.metrics`); counts, costs and
probabilities are skipped. The test split is read by default. Perturbed prompts form separate runs; training trials are
trials.
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
from tracker.ingest.reported_score import ReportedScore

SPECIFICITY = 30
RECOGNIZED_BY = "per_instance_stats.json in a run folder"
SUPPORTS_SPLITS = True
START = re.compile(rb'\s*\[\s*\{\s*"(?:instance_id|perturbation|train_trial_index|stats)"\s*:')


def mismatch_reason(path: Path, options: ReadOptions) -> str | None:
    """Return why the file is not a per_instance_stats.json of HELM."""
    if path.name.removesuffix(".gz") != "per_instance_stats.json":
        return "the name is not per_instance_stats.json"
    data = first_bytes(path, 4096)
    if isinstance(data, str):
        return data
    return None if START.match(data) else Mismatch('it does not start with [{"instance_id":', 1 / 2)


def companion_files(path: Path) -> Sequence[Path]:
    """Return the other files of the run."""
    return HelmRunFolder(path, ReadOptions()).companion_files


def harness_name(path: Path) -> str | None:
    """Return the program; its files do not contain the version."""
    return "helm"


def read(path: Path, options: ReadOptions) -> Iterator[Measurement | ReportedScore | str]:
    """Yield the prompts and answers of scenario_state.json, then the scores.

    Raises:
        BadInputError: a file of the run is invalid, or no file names the model.
    """
    folder = HelmRunFolder(path, options)
    yield from folder.warnings()
    states = ScenarioStates(folder)
    yield from states.blocks()
    yield from InstanceStatistics(folder, states).blocks()
