"""Metadata from results_*.json: model, tasks, settings and task scores."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import check_text, read_bytes
from tracker.ingest.measurement import (
    MetricDescription,
    ReadOptions,
    RunDescription,
    TaskScores,
    metric_description,
)

MODEL_KEYS = ("peft", "delta", "pretrained", "model", "model_name", "path", "engine")
RANDOM_NAME = re.compile(r"[a-z0-9]{8}")
NOT_METRICS = ("alias", "name", "sample_len", "samples")
SETTINGS = (
    "git_hash", "lm_eval_version", "transformers_version", "model_source", "system_instruction_sha",
    "fewshot_as_multiturn", "chat_template_sha", "max_length", "versions", "n-shot", "task_hashes",
)  # fmt: skip
CONFIG = (
    "model", "model_args", "model_dtype", "model_revision", "model_sha", "batch_size", "device", "limit",
    "gen_kwargs", "random_seed", "numpy_seed", "torch_seed", "fewshot_seed",
)  # fmt: skip
TEMPLATE = ("description", "doc_to_text", "doc_to_target", "doc_to_choice", "target_delimiter", "fewshot_delimiter")


@dataclass(frozen=True, eq=False)
class LmEvalResults:
    """Metadata of one invocation of the harness.

    Attributes:
        path: the file that is read, for messages.
        data: content of the results; empty if there are only samples.
        stamp: the time in the file names.
        options: how to read the file.
    """

    path: Path
    data: Mapping[str, Any]
    stamp: str | None
    options: ReadOptions

    @classmethod
    def read(
        cls, path: Path | None, stamp: str | None, options: ReadOptions, *, samples: Path | None = None
    ) -> LmEvalResults:
        """Read a results file; without one, return empty metadata.

        Raises:
            BadInputError: the file is not JSON or not a results file.
        """
        if path is None:
            assert samples is not None
            return cls(samples, {}, stamp, options)
        data = read_bytes(path)
        check_text(path, data)
        try:
            content = json.loads(data.decode("utf-8-sig"))
        except json.JSONDecodeError as error:
            text = f"line {error.lineno}, column {error.colno}: the JSON is invalid or truncated ({error.msg})."
            raise BadInputError(path, text) from error
        except (RecursionError, ValueError) as error:
            raise BadInputError(path, f"the JSON cannot be read ({error}).") from error
        if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
            raise BadInputError(path, "has no task results, so it is not a result file of lm-evaluation-harness.")
        return cls(path, content, stamp, options)

    @property
    def version(self) -> str | None:
        """Return the version of the harness."""
        version = self.data.get("lm_eval_version")
        return version if isinstance(version, str) else None

    @cached_property
    def tasks(self) -> list[str]:
        """Return the evaluated tasks, without groups."""
        groups = {name for name, parts in self._part("group_subtasks").items() if parts}
        return [str(task) for task in self._part("results") if task not in groups]

    @cached_property
    def model(self) -> str:
        """Return the name of the model.

        Raises:
            BadInputError: the name is a placeholder of the harness, or there are only samples.
        """
        if self.options.model:
            return self.options.model
        config = self._part("config")
        arguments = _arguments(config.get("model_args"))
        model_argument = next((arguments[key] for key in MODEL_KEYS if arguments.get(key)), None)
        name = self.data.get("model_name")
        if isinstance(name, str) and name and (model_argument or not RANDOM_NAME.fullmatch(name)):
            return name
        if model_argument:
            return model_argument
        if not self.data:
            raise BadInputError(
                self.path, "does not name the model, and the results file is missing; add --model NAME."
            )
        made_up = f": {name!r} is a placeholder of the harness" if name else ""
        raise BadInputError(self.path, f"does not name the model{made_up}; add --model NAME.")

    def full_task_name(self, name: str) -> str:
        """Return the task of a file name, in which some characters are replaced."""
        return next((task for task in self.tasks if re.sub(r'["<>:/|\\?*\[\]]+', "__", task) == name), name)

    def benchmark(self, task: str) -> str:
        """Return the benchmark of a task: from the options, its outermost group, or the task itself."""
        if self.options.benchmark:
            return self.options.benchmark
        parents = {
            str(part): str(group)
            for group, parts in self._part("group_subtasks").items()
            if isinstance(parts, (list, dict))
            for part in parts
        }
        passed = {task}
        while (group := parents.get(task)) is not None and group not in passed:
            passed.add(group)
            task = group
        return task

    def few_shot(self, task: str) -> int | None:
        """Return the number of few-shot examples of a task."""
        n_examples = self._part("n-shot").get(task)
        return (
            n_examples
            if isinstance(n_examples, int) and not isinstance(n_examples, bool) and 0 <= n_examples < 2**31
            else None
        )

    def split(self, task: str) -> str | None:
        """Return the source of a task's prompts."""
        config = self._part("configs").get(task)
        config = config if isinstance(config, dict) else {}
        name = config.get("test_split") or config.get("validation_split")
        return name if isinstance(name, str) else None

    def metric(self, task: str, name: str, filter_name: str) -> MetricDescription:
        """Return a metric; its name contains the filter if there is one."""
        known = metric_description(name if filter_name == "none" else f"{name},{filter_name}", self.options)
        directions = self._part("higher_is_better").get(task)
        better = directions.get(name) if isinstance(directions, dict) else None
        if self.options.higher_is_better is not None or not isinstance(better, bool):
            return known
        return MetricDescription(name=known.name, higher_is_better=better, lower=known.lower, upper=known.upper)

    def run(self, benchmark: str) -> RunDescription:
        """Return the run of a benchmark's tasks."""
        config = self._part("config")
        few_shot_counts = {self.few_shot(task) for task in self.tasks if self.benchmark(task) == benchmark}
        parameters = config.get("model_num_parameters")
        return RunDescription(
            model=self.model,
            benchmark=benchmark,
            condition=self.options.condition_of_runs,
            label=self.stamp or "",
            few_shot=few_shot_counts.pop() if len(few_shot_counts) == 1 else None,
            settings=self._settings,
            limited=config.get("limit") is not None or any(map(_is_part, self._part("n-samples").values())),
            started=_instant(self.data.get("date")),
            model_facts={"parameters": parameters} if isinstance(parameters, int) and parameters > 0 else {},
        )

    def task_scores(self, *, without: Sequence[str]) -> Iterator[TaskScores | str]:
        """Yield the task scores of tasks without samples."""
        rows_by_metric: dict[tuple[str, str], list[tuple[str, MetricDescription, float, float, int | None]]] = {}
        for task in self.tasks:
            values = self._part("results")[task]
            if task in without or not isinstance(values, dict):
                continue
            sizes = self._part("n-samples").get(task)
            size = sizes.get("effective") if isinstance(sizes, dict) else None
            for key, value in values.items():
                name, _, filter_name = key.partition(",")
                number = _finite(value)
                if number is None or name in NOT_METRICS or name.endswith("_stderr") or name == "bypass":
                    continue
                metric = self.metric(task, name, filter_name or "none")
                error = _finite(values.get(f"{name}_stderr,{filter_name}" if filter_name else f"{name}_stderr"))
                low = -math.inf if metric.lower is None else metric.lower
                high = math.inf if metric.upper is None else metric.upper
                if not low <= number <= high:
                    text = f"{key} of {task} is {number:g}, outside [{low:g}, {high:g}]."
                    raise BadInputError(self.path, text)
                row = (
                    task,
                    metric,
                    number,
                    math.nan if error is None else error,
                    size if isinstance(size, int) else None,
                )
                rows_by_metric.setdefault((self.benchmark(task), metric.name), []).append(row)
        for (benchmark, _), rows in rows_by_metric.items():
            yield TaskScores(
                run=self.run(benchmark),
                metric=rows[0][1],
                tasks=[row[0] for row in rows],
                values=np.array([row[2] for row in rows]),
                stderr=np.array([row[3] for row in rows]),
                n_prompts=[row[4] for row in rows],
            )
        if rows_by_metric:
            tasks = dict.fromkeys(row[0] for rows in rows_by_metric.values() for row in rows)
            yield f"{', '.join(tasks)}: no scores per prompt, only task scores (run lm_eval with --log_samples)"

    @cached_property
    def _settings(self) -> dict[str, Any]:
        config = self._part("config")
        settings = {name: self.data.get(name) for name in SETTINGS} | {name: config.get(name) for name in CONFIG}
        templates = {
            str(task): hashlib.sha256(json.dumps([config.get(part) for part in TEMPLATE]).encode()).hexdigest()[:16]
            for task, config in self._part("configs").items()
            if isinstance(config, dict)
        }
        settings["prompt_templates"] = templates or None
        return {name: value for name, value in settings.items() if value is not None}

    def _part(self, name: str) -> Mapping[str, Any]:
        part = self.data.get(name)
        return part if isinstance(part, dict) else {}


def _arguments(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(name): str(value) for name, value in value.items() if value}
    pairs = (pair.partition("=") for pair in value.split(",")) if isinstance(value, str) else ()
    return {name.strip(): value.strip() for name, _, value in pairs}


def _instant(seconds: Any) -> datetime | None:
    number = _finite(seconds)
    try:
        return None if number is None else datetime.fromtimestamp(number, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _is_part(counts: Any) -> bool:
    if not isinstance(counts, dict):
        return False
    effective, original = _finite(counts.get("effective")), _finite(counts.get("original"))
    return effective is not None and original is not None and effective < original


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
