"""Metadata of a HELM run folder: model, scenario, settings, splits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import open_file, report_progress_to
from tracker.ingest.files.json_files import parse_json, read_json
from tracker.ingest.files.json_stream import stream_parts
from tracker.ingest.files.json_values import count, mapping, number, text
from tracker.ingest.measurement import ReadOptions, RunDescription

NAMESPACE = "helm"
OTHER_FILES = ("run_spec.json", "scenario.json", "scenario_state.json", "stats.json")
TEST = "test"
CHUNK = 1 << 20
MAX_NAME_LENGTH = 1 << 12
NAME = rb'\s*:\s*"((?:[^"\\]|\\.){0,400})"'
SPLIT, INSTANCE = re.compile(rb'"split"' + NAME), re.compile(rb'"instance_id"' + NAME)
"""Names of splits and instances. They never match inside a text, where quotes are escaped by backslashes."""
PROMPT_ARGUMENTS = frozenset({
    "model", "model_deployment", "method", "data_augmentation", "max_train_instances", "max_eval_instances",
    "num_train_trials", "num_outputs", "num_train_instances", "train_trial_index", "temperature", "tokenizer",
    "instructions", "prompt", "stop", "seed", "groups", "eval_split", "train_split", "global_prefix",
    "output_format_instructions", "annotator_type", "max_tokens", "num_thinking_tokens",
})  # fmt: skip
"""Arguments of a run that are settings and not part of the scenario."""
MAX_SETTING_LENGTH = 200


class HelmRunFolder:
    """The files of one run.

    Args:
        path: its per_instance_stats.json.
        options: how to read the file.
    """

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path, self.options = path, options
        self._runs: dict[str, RunDescription] = {}

    def beside(self, name: str) -> Path | None:
        """Return another file of the run, gzipped or not; None if it does not exist."""
        candidates = (self.path.with_name(name), self.path.with_name(f"{name}.gz"))
        return next((path for path in candidates if path.is_file()), None)

    @property
    def companion_files(self) -> Sequence[Path]:
        """Return the other existing files of the run."""
        return [path for name in OTHER_FILES if (path := self.beside(name)) is not None]

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """Return the content of run_spec.json; empty if it does not exist."""
        path = self.beside("run_spec.json")
        return {} if path is None else mapping(read_json(path))

    @cached_property
    def adapter(self) -> Mapping[str, Any]:
        """Return the adapter settings, which turn instances into requests."""
        adapter = mapping(self.spec.get("adapter_spec"))
        path = self.beside("scenario_state.json")
        if adapter or path is None:
            return adapter
        with report_progress_to(None):
            for name, data in read_pieces(path, "request_states"):
                if name is None:
                    break
                if name == "adapter_spec":
                    return mapping(parse_json(path, data))
        return adapter

    @cached_property
    def name(self) -> str:
        """Return scenario and arguments, such as ``mmlu:subject=philosophy,model=org_model``; by default, the folder's
        name.
        """
        name = text(self.spec.get("name"))
        if name:
            return name
        folder = self.path.absolute().parent.name
        scenario, dash, arguments = folder.partition("-")
        return f"{scenario}:{arguments}" if dash and "=" in arguments and ":" not in folder else folder

    @property
    def benchmark(self) -> str:
        """Return the benchmark named by the user, else the scenario."""
        return self.options.benchmark or self._scenario

    @property
    def _scenario(self) -> str:
        return self.name.partition(":")[0].strip() or "helm"

    @cached_property
    def task(self) -> str:
        """Return the value of the scenario's argument, such as philosophy; with names if there are several."""
        arguments = [pair.strip().partition("=") for pair in self.name.partition(":")[2].split(",")]
        arguments_of_task = [(name, value) for name, _, value in arguments if name not in PROMPT_ARGUMENTS and value]
        return (
            arguments_of_task[0][1]
            if len(arguments_of_task) == 1
            else ",".join(f"{name}={value}" for name, value in arguments_of_task) or self._scenario
        )

    @property
    def method(self) -> str:
        """Return the adapter method."""
        return text(self.adapter.get("method")) or ""

    @property
    def is_multiple_choice(self) -> bool:
        """Return whether references are options."""
        return self.method.startswith("multiple_choice")

    @property
    def scores_options_separately(self) -> bool:
        """Return whether each option is a separate request."""
        return self.method.startswith("multiple_choice_separate")

    @cached_property
    def model(self) -> str:
        """Return the name of the model.

        Raises:
            BadInputError: no file names it.
        """
        names = (self.options.model, self.adapter.get("model"), self.adapter.get("model_deployment"))
        model = next((name for name in names if text(name)), None)
        if model is None:
            lack = "run_spec.json" if not self.spec else "its adapter_spec"
            raise BadInputError(self.path, f"does not name the model ({lack} is missing); add --model NAME.")
        return str(model)

    @cached_property
    def _splits_and_size(self) -> tuple[Sequence[str], int]:
        """Return the splits and their numbers of instances."""
        splits: set[bytes] = set()
        instances: set[bytes] = set()
        kept = b""
        with report_progress_to(None), open_file(self.path) as file:
            while chunk := file.read(CHUNK):
                data = kept + chunk
                splits.update(SPLIT.findall(data))
                instances.update(INSTANCE.findall(data))
                kept = data[-MAX_NAME_LENGTH:]
        return sorted(split.decode(errors="replace") for split in splits), len(instances)

    @cached_property
    def splits(self) -> frozenset[str] | None:
        """Return the splits to read; None for all.

        Raises:
            BadInputError: the run has none of the selected splits.
        """
        splits, _ = self._splits_and_size
        if self.options.splits:
            if lacking := [split for split in self.options.splits if split not in splits]:
                known = ", ".join(splits) or "none"
                raise BadInputError(self.path, f"no split {lacking[0]!r}. Splits of this run: {known}.")
            return frozenset(self.options.splits)
        return frozenset([TEST]) if TEST in splits else None

    def warnings(self) -> Iterator[str]:
        """Yield warnings on the splits that are read."""
        splits, _ = self._splits_and_size
        if self.splits is None and splits:
            yield f"no test split; read the splits {', '.join(splits)}"
        elif self.splits is not None and (unused := [split for split in splits if split not in self.splits]):
            used = ", ".join(split for split in splits if split in self.splits)
            yield f"read the split {used}, skipped {', '.join(unused)} (choose with --split)"

    def takes(self, split: str | None) -> bool:
        """Return whether prompts of a split are read."""
        return self.splits is None or split in self.splits

    def run(self, variant: str) -> RunDescription:
        """Return the run of a perturbation; '' for none.

        Raises:
            BadInputError: no file names the model.
        """
        if variant not in self._runs:
            most = count(self.adapter.get("max_eval_instances"))
            self._runs[variant] = RunDescription(
                model=self.model,
                benchmark=self.benchmark,
                condition=self.options.condition_of_runs,
                variant=", ".join(part for part in (self._other_splits, variant) if part),
                few_shot=count(self.adapter.get("max_train_instances")),
                settings=self._settings,
                limited=most is not None and self._splits_and_size[1] >= most,
            )
        return self._runs[variant]

    @cached_property
    def _other_splits(self) -> str:
        """Return the variant of scores on splits that the user selected; '' for the default split."""
        splits, _ = self._splits_and_size
        usual = {TEST} if TEST in splits else set(splits)
        chosen = set(self.options.splits)
        return f"split {'+'.join(sorted(chosen))}" if chosen and chosen != usual else ""

    @cached_property
    def _settings(self) -> dict[str, Any]:
        plain = {
            name: value
            for name, value in self.adapter.items()
            if isinstance(value, bool)
            or number(value) is not None
            or (isinstance(value, str) and 0 < len(value) <= MAX_SETTING_LENGTH)
            or (isinstance(value, list) and len(value) <= 8 and all(isinstance(element, str) for element in value))
        }
        return plain | ({"run_spec": self.spec["name"]} if text(self.spec.get("name")) else {})


def read_pieces(path: Path, *names: str) -> Iterator[tuple[str | None, bytes]]:
    """Yield the elements of a list in a file as JSON, and the members beside the list with names."""
    with open_file(path) as file:
        yield from stream_parts(iter(lambda: file.read(CHUNK), b""), path, of=names)


def parse_variant(perturbation: Any) -> str | None:
    """Return the name of a perturbation with its parameters; '' for none, None for statistics over several."""
    fields = mapping(perturbation)
    if fields.get("computed_on") in ("worst", "original"):
        return None
    parameters = [
        f"{name}={value}"
        for name, value in sorted(fields.items())
        if name not in ("name", "robustness", "fairness", "computed_on") and isinstance(value, (str, int, float))
    ]
    name = text(fields.get("name")) or ("perturbed" if fields else "")
    return f"{name}({', '.join(parameters)})" if parameters else name
