"""Metadata from results_<time>.json and from file names: model, task, settings, task scores."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import count, mapping, number, text
from tracker.ingest.measurement import ReadOptions, RunDescription, metric_description
from tracker.ingest.reported_score import CORPUS, CORPUS_METRICS, MEANS, ReportedScore, rows_of

STAMP = r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d(?:\.\d+)?"
DETAILS_NAME = re.compile(rf"details_(?P<task>.+?)_(?P<stamp>{STAMP})\.parquet(?:\.gz)?")
RESULTS_NAME = re.compile(rf"results_(?P<stamp>{STAMP})\.json(?:\.gz)?")
OLD_FOLDER = re.compile(r"details_(?P<organization>[^/]+?)__(?P<model>[^/]+)")
SUMMARIES = ("all", "_average")
MAX_SETTING_LENGTH = 200


@dataclass(frozen=True)
class TaskName:
    """A task name of lighteval: ``suite|name:part|shots``; newer versions omit the suite.

    Attributes:
        suite: '' if there is none.
        benchmark, task: name and part; without a part, both are the name.
        few_shot: number of few-shot examples; None if unknown.
    """

    suite: str
    benchmark: str
    task: str
    few_shot: int | None

    @classmethod
    def parsed(cls, written: str) -> TaskName:
        """Parse a task name."""
        parts = [part.strip() for part in written.split("|")]
        numbers = [part for part in parts if re.fullmatch(r"\d{1,4}", part)]
        words = [part for part in parts if part and not re.fullmatch(r"\d{1,4}", part)] or [written.strip() or "task"]
        suite, name = (words[0], words[1]) if len(words) > 1 else ("", words[0])
        benchmark, _, part = name.partition(":")
        return cls(suite, benchmark or name, part or benchmark or name, int(numbers[0]) if numbers else None)


@dataclass(frozen=True, eq=False)
class LightevalResults:
    """Metadata of one run of the harness.

    Attributes:
        path: the file that is read, for messages.
        file: the results file; may be missing.
        stamp: the time in the file names, '' without.
        options: how to read the file.
    """

    path: Path
    file: Path | None
    stamp: str
    options: ReadOptions
    _runs: dict[tuple[TaskName, str], RunDescription] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, options: ReadOptions) -> LightevalResults:
        """Return the results file itself, or that of some details."""
        if name := RESULTS_NAME.fullmatch(path.name):
            return cls(path, path, name["stamp"], options)
        name = DETAILS_NAME.fullmatch(path.name)
        if name is None:
            return cls(path, None, "", options)
        results = cls(path, None, name["stamp"], options)
        places = [path.parent, path.parent.parent]
        if (split := results._below("details")) is not None:
            root, model = split
            places.insert(0, root / "results" / model)
        files = (place / f"results_{name['stamp']}.json{gz}" for place in places for gz in ("", ".gz"))
        return cls(path, next((file for file in files if file.is_file()), None), name["stamp"], options)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """Return the content of the results; empty without.

        Raises:
            BadInputError: the file is not JSON or not of lighteval.
        """
        if self.file is None:
            return {}
        content = read_json(self.file)
        if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
            raise BadInputError(self.file, "has no task results, so it is not a result file of lighteval.")
        return content

    @property
    def _general(self) -> Mapping[str, Any]:
        return mapping(self.data.get("config_general"))

    @property
    def commit(self) -> str | None:
        """Return the commit of the harness."""
        sha = text(self._general.get("lighteval_sha"))
        return sha if sha is not None and re.fullmatch(r"[0-9a-f]{7,40}", sha) else None

    def details(self) -> Sequence[Path]:
        """Return the details of the same time."""
        split = self._below("results")
        folders = [self.path.parent, self.path.parent / self.stamp]
        if split is not None:
            root, model = split
            folders = [root / "details" / model / self.stamp, root / "details" / model, *folders]
        for folder in folders:
            files = sorted(folder.iterdir()) if folder.is_dir() else []
            candidates = [
                file for file in files if (name := DETAILS_NAME.fullmatch(file.name)) and name["stamp"] == self.stamp
            ]
            if candidates:
                return candidates
        return ()

    def _below(self, folder: str) -> tuple[Path, Path] | None:
        """Return the parent of the folder with this name, and the path from there to the file without the time."""
        parents = list(self.path.absolute().parents)
        for place, parent in enumerate(parents):
            if parent.name == folder and place:
                relative = self.path.absolute().parent.relative_to(parent)
                return parent.parent, relative.parent if relative.name == self.stamp and self.stamp else relative
        return None

    @cached_property
    def model(self) -> str:
        """Return the model: from the options, the results, or the folders of the details.

        Raises:
            BadInputError: none of them names it.
        """
        if self.options.model:
            return self.options.model
        for config in (
            self._general,
            mapping(self._general.get("model_config")),
            mapping(self.data.get("model_config")),
        ):
            if name := text(config.get("model_name")):
                return name
        split = self._below("details") or self._below("results")
        if split is not None and split[1].parts:
            return split[1].as_posix()
        old = (OLD_FOLDER.fullmatch(parent.name) for parent in self.path.absolute().parents)
        if match := next((match for match in old if match is not None), None):
            return f"{match['organization']}/{match['model']}"
        raise BadInputError(self.path, "neither its folder nor a results file names the model; add --model NAME.")

    def run(self, task: TaskName) -> RunDescription:
        """Return the run of a task.

        Raises:
            BadInputError: the model is unknown.
        """
        label = self._label(task)
        if (task, label) not in self._runs:
            self._runs[task, label] = RunDescription(
                model=self.model,
                benchmark=self.options.benchmark or task.benchmark,
                condition=self.options.condition_of_runs,
                label=label,
                few_shot=task.few_shot,
                settings=self._settings | ({"suite": task.suite} if task.suite else {}),
                limited=self._general.get("max_samples") is not None,
            )
        return self._runs[task, label]

    def _label(self, task: TaskName) -> str:
        """Return the time; with suite and few-shot examples if the task was evaluated with several settings."""
        same = {
            task_name
            for task_name in self._evaluated_tasks
            if (task_name.benchmark, task_name.task) == (task.benchmark, task.task)
        } | {task}
        if len(same) == 1:
            return self.stamp
        how = "|".join(str(part) for part in (task.suite, task.few_shot) if part not in ("", None))
        return f"{self.stamp} {how}".strip()

    @cached_property
    def _evaluated_tasks(self) -> set[TaskName]:
        files = self.details() if self.path == self.file else sorted(self.path.parent.iterdir())
        names = (DETAILS_NAME.fullmatch(file.name) for file in files)
        names_of_files = {TaskName.parsed(name["task"]) for name in names if name and name["stamp"] == self.stamp}
        return names_of_files | {TaskName.parsed(name) for name in self._tasks}

    @cached_property
    def _settings(self) -> dict[str, Any]:
        config = {**self._general, **mapping(self._general.get("model_config"))}
        return {
            name: value
            for name, value in config.items()
            if isinstance(value, bool)
            or number(value) is not None
            or (isinstance(value, str) and 0 < len(value) <= MAX_SETTING_LENGTH)
        }

    @property
    def _tasks(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the reported numbers by task, without averages."""
        return {
            name: values
            for name, values in mapping(self.data.get("results")).items()
            if isinstance(values, dict) and not any(part in SUMMARIES for part in re.split(r"[|:]", name))
        }

    @property
    def evaluated(self) -> dict[str, TaskName]:
        """Return the tasks with reported scores, by their full names."""
        return {name: TaskName.parsed(name) for name in self._tasks}

    def reported_scores(
        self, tasks: Collection[TaskName], *, without_numbers: Collection[str] = ()
    ) -> Iterator[ReportedScore]:
        """Yield the reported scores of some tasks.

        Args:
            tasks: the tasks.
            without_numbers: metrics of which the details hold something else than numbers.
        """
        for name, values in self._tasks.items():
            task = TaskName.parsed(name)
            docs = mapping(mapping(self.data.get("config_tasks")).get(name.rpartition("|")[0]))
            for key, value in values.items() if task in tasks else ():
                reported, error = number(value), number(values.get(f"{key}_stderr"))
                if reported is None or key.endswith("_stderr"):
                    continue
                metric = metric_description(key, self.options)
                aggregations = CORPUS if key in without_numbers else CORPUS_METRICS.get(key, MEANS)
                yield ReportedScore(
                    run=self.run(task),
                    metric=metric,
                    tasks=(task.task,),
                    value=reported,
                    stderr=math.nan if error is None else error,
                    has_sample_stderr=aggregations == MEANS,
                    aggregations=aggregations,
                    rows=rows_of(metric) if key in CORPUS_METRICS else None,
                    n_prompts=count(docs.get("effective_num_docs")),
                    name=key,
                )
