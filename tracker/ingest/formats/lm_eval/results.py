"""Metadata from results_*.json: model, tasks, settings and task scores."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.file_contents import check_text, read_bytes
from tracker.ingest.files.json_values import count, instant, mapping, number, text, version_warning
from tracker.ingest.measurement import (
    MetricDescription,
    ReadOptions,
    RunDescription,
    metric_description,
)
from tracker.ingest.reported_score import CORPUS, CORPUS_METRICS, MEANS, ReportedScore, rows_of

MODEL_KEYS = ("peft", "delta", "pretrained", "model", "model_name", "path", "engine")
RANDOM_NAME = re.compile(r"[a-z0-9]{8}")
KNOWN_VERSIONS = ("0.4",)
AGGREGATIONS = {
    "mean": MEANS,
    "nanmean": MEANS,
    "median": ("upper_median",),
    "perplexity": ("perplexity",),
    "weighted_perplexity": ("weighted_perplexity",),
    "bits_per_byte": ("bits_per_byte",),
}
"""The harness's aggregations that scores of rows determine, by name."""
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
            problem = f"line {error.lineno}, column {error.colno}: the JSON is invalid or truncated ({error.msg})."
            raise BadInputError(path, problem) from error
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

    @property
    def version_warning(self) -> str | None:
        """Return the warning about an unknown version of the harness."""
        return version_warning("lm_eval_version", self.version, KNOWN_VERSIONS)

    @cached_property
    def tasks(self) -> list[str]:
        """Return the evaluated tasks, without groups."""
        groups = {name for name, parts in self._groups.items() if parts}
        return [str(task) for task in self._part("results") if task not in groups]

    @cached_property
    def _groups(self) -> Mapping[str, Any]:
        """Return the parts of each group; before 0.4.1 the configurations of tasks name their groups instead."""
        if "group_subtasks" in self.data:
            return self._part("group_subtasks")
        members: dict[str, list[str]] = {str(group): [] for group in self._part("groups")}
        for task, config in self._part("configs").items():
            names = mapping(config).get("group")
            for name in names if isinstance(names, list) else [names]:
                if isinstance(name, str) and name in members:
                    members[name].append(str(task))
        return members

    @cached_property
    def model(self) -> str:
        """Return the name of the model; if the file has none, that of a folder ``org__model``, which the harness makes.

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
        maker, mark, model = self.path.parent.name.partition("__")
        if maker and mark and model:
            return f"{maker}/{model}"
        if not self.data:
            raise BadInputError(
                self.path, "does not name the model, and the results file is missing; add --model NAME."
            )
        made_up = f": {name!r} is a placeholder of the harness" if name else ""
        raise BadInputError(self.path, f"does not name the model{made_up}; add --model NAME.")

    def full_task_name(self, name: str) -> str:
        """Return the task of a file name, in which some characters are replaced.

        Before 0.4.3 the name begins with the arguments of the model: ``pretrained__org__model_<task>``.
        """
        names = {re.sub(r'["<>:/|\\?*\[\]]+', "__", task): task for task in self.tasks}
        ends = [written for written in names if name == written or name.endswith(f"_{written}")]
        return names[max(ends, key=len)] if ends else name

    def benchmark(self, task: str) -> str:
        """Return the benchmark of a task: from the options, its outermost group, or the task itself."""
        if self.options.benchmark:
            return self.options.benchmark
        parents = {
            str(part): str(group)
            for group, parts in self._groups.items()
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
            started=instant(self.data.get("date")),
            model_facts={"parameters": parameters} if isinstance(parameters, int) and parameters > 0 else {},
        )

    def aggregations(self, task: str, name: str) -> tuple[str, ...]:
        """Return how the harness aggregates a metric of a task: as configured, else by its default."""
        config = self._part("configs").get(task)
        metrics = config.get("metric_list") if isinstance(config, dict) else None
        for metric in metrics if isinstance(metrics, list) else ():
            if isinstance(metric, dict) and metric.get("metric") == name and metric.get("aggregation") is not None:
                return AGGREGATIONS.get(metric["aggregation"], CORPUS) if text(metric["aggregation"]) else CORPUS
        return CORPUS_METRICS.get(name, MEANS)

    def row_metric(self, task: str, name: str, filter_name: str) -> MetricDescription:
        """Return the metric of the rows: under another name if the harness does not average them."""
        metric = self.metric(task, name, filter_name)
        return metric if self.aggregations(task, name) == MEANS else rows_of(metric)

    def filters(self, task: str) -> list[str]:
        """Return the filters of a task in the order in which the harness writes their samples."""
        config = self._part("configs").get(task)
        filter_list = config.get("filter_list") if isinstance(config, dict) else None
        names = [text(mapping(part).get("name")) for part in filter_list] if isinstance(filter_list, list) else []
        keys = mapping(self._part("results").get(task))
        reported = [key.partition(",")[2] for key in keys if "," in key]
        return list(dict.fromkeys(name for name in names if name)) or list(dict.fromkeys(reported))

    def reported(self, tasks: Sequence[str], without_numbers: Collection[tuple[str, str]]) -> Iterator[ReportedScore]:
        """Yield the reported scores of some tasks.

        Args:
            tasks: their names.
            without_numbers: tasks and metrics of which the samples hold something else than numbers.
        """
        for task in tasks:
            size = count(mapping(self._part("n-samples").get(task)).get("effective"))
            for key, value, error in self._numbers(task):
                name, _, filter_name = key.partition(",")
                metric = self.metric(task, name, filter_name or "none")
                aggregations = CORPUS if (task, name) in without_numbers else self.aggregations(task, name)
                yield ReportedScore(
                    run=self.run(self.benchmark(task)),
                    metric=metric,
                    tasks=(task,),
                    value=value,
                    stderr=math.nan if error is None else error,
                    has_sample_stderr=aggregations == MEANS,
                    aggregations=aggregations,
                    rows=None if aggregations == MEANS else self.row_metric(task, name, filter_name or "none"),
                    n_prompts=size,
                    name=key,
                )

    def reported_groups(self, sampled: Sequence[str]) -> Iterator[ReportedScore]:
        """Yield the reported scores of groups whose tasks all have samples, for comparison only."""
        for group, parts in self._groups.items():
            tasks = self._tasks_of(str(group), set())
            if not parts or not tasks or not set(tasks) <= set(sampled):
                continue
            for key, value, _ in self._numbers(str(group)):
                name, _, filter_name = key.partition(",")
                of_parts = [number(mapping(self._part("results").get(part)).get(key)) for part in parts]
                known = [part for part in of_parts if part is not None]
                if len(known) == len(tasks) or not known or abs(math.fsum(known) / len(known) - value) > 1e-9:
                    yield ReportedScore(
                        run=self.run(self.benchmark(tasks[0])),
                        metric=self.metric(tasks[0], name, filter_name or "none"),
                        tasks=tuple(tasks),
                        value=value,
                        aggregations=("row_mean", "task_mean")
                        if all(self.aggregations(task, name) == MEANS for task in tasks)
                        else CORPUS,
                        is_stored=False,
                        name=f"{key} of {group}",
                    )

    def _tasks_of(self, group: str, passed: set[str]) -> list[str]:
        """Return the tasks of a group and of the groups in it."""
        parts = self._groups.get(group)
        if not isinstance(parts, (list, dict)) or group in passed or not parts:
            return []
        passed.add(group)
        return [
            task for part in map(str, parts) for task in (self._tasks_of(part, passed) or [part] * (part in self.tasks))
        ]

    def _numbers(self, task: str) -> Iterator[tuple[str, float, float | None]]:
        """Yield the keys of a task's results with their numbers and standard errors."""
        values = mapping(self._part("results").get(task))
        for key, value in values.items():
            name, comma, filter_name = key.partition(",")
            reported = number(value)
            if reported is None or name in NOT_METRICS or name.endswith("_stderr") or name == "bypass":
                continue
            yield key, reported, number(values.get(f"{name}_stderr{comma}{filter_name}"))

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


def _is_part(counts: Any) -> bool:
    effective, original = number(mapping(counts).get("effective")), number(mapping(counts).get("original"))
    return effective is not None and original is not None and effective < original
