"""The aggregate file: whose results they are, of what, under which metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tracker.errors import BadInputError
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import count, instant, mapping, number, score, setting, text
from tracker.ingest.formats.every_eval_ever import vocabulary as ours
from tracker.ingest.formats.every_eval_ever.results import Result, are_one, is_percent, metric_of
from tracker.ingest.measurement import (
    MetricDescription,
    ReadOptions,
    RunDescription,
    TaskScores,
)

READ_VERSIONS = ("0.2", "0.3")


class Aggregate:
    """An aggregate file, or as much of one as the rows of instances tell.

    Args:
        path: the file, for messages.
        data: its content.
        options: what the user says.
    """

    def __init__(self, path: Path, data: Mapping[str, Any], options: ReadOptions) -> None:
        self.path, self.data, self.options = path, data, options
        self.warnings: list[str] = []

    @classmethod
    def read(cls, path: Path, options: ReadOptions) -> Aggregate:
        """Read a file.

        Raises:
            BadInputError: it is no JSON, or no aggregate.
        """
        data = read_json(path)
        if not isinstance(data, dict) or not isinstance(data.get("evaluation_results"), list):
            raise BadInputError(path, "has no list evaluation_results, so it is no aggregate of Every Eval Ever.")
        return cls(path, data, options)

    @property
    def id(self) -> str | None:
        """Its evaluation_id."""
        return text(self.data.get("evaluation_id"))

    @property
    def model_id(self) -> str | None:
        """What the file calls the model."""
        info = mapping(self.data.get("model_info"))
        return text(info.get("id")) or text(info.get("name"))

    @cached_property
    def added(self) -> Mapping[str, Any]:
        """What was added to the source; our own words among it."""
        return mapping(mapping(self.data.get("source_metadata")).get("additional_details"))

    @property
    def is_ours(self) -> bool:
        """Whether our export wrote it."""
        return ours.BENCHMARK in self.added

    @cached_property
    def benchmark(self) -> str | None:
        """What the results are of: our own word, the first part of the evaluation_id, the source, the only name."""
        parts = (self.id or "").split("/")
        named = {text(mapping(one).get("evaluation_name")) for one in self.data.get("evaluation_results") or ()}
        return (
            self.options.benchmark
            or text(self.added.get(ours.BENCHMARK))
            or (text(parts[0]) if len(parts) > 2 else None)
            or text(mapping(self.data.get("source_metadata")).get("source_name"))
            or (named.pop() if len(named) == 1 else None)
        )

    @cached_property
    def run(self) -> RunDescription:
        """Who answered, and how.

        Raises:
            BadInputError: it does not name the model.
        """
        model = self.options.model or self.model_id
        if model is None:
            raise BadInputError(self.path, "model_info names no model.", advice="Name it with --model NAME.")
        parts = (self.id or "").split("/")
        label = self.added.get(ours.LABEL)
        shots = self.added.get(ours.FEW_SHOT)
        return RunDescription(
            model=model,
            benchmark=self.benchmark,
            condition=self.options.condition
            or ("answer_only" if self.added.get(ours.CONDITION) == "answer_only" else "full"),
            variant=text(self.added.get(ours.VARIANT)) or "",
            label=label if isinstance(label, str) else (parts[-1] if len(parts) > 2 else self.id or ""),
            few_shot=int(shots) if isinstance(shots, str) and shots.isdecimal() and len(shots) < 9 else None,
            settings=self._settings,
            limited=self.added.get(ours.LIMITED) == "true",
            started=self._started,
            model_facts=self._model_facts,
        )

    @cached_property
    def results(self) -> list[Result]:
        """Its results; of several that would be one task and metric, each has a name of its own.

        Raises:
            BadInputError: one of them is none, or its score is no number.
        """
        found: list[Result] = []
        for place, one in enumerate(self.data.get("evaluation_results") or ()):
            if not isinstance(one, dict):
                raise BadInputError(self.path, f"evaluation_results[{place}] is no object.")
            found.append(self._result(place, one))
        return self._told_apart(found)

    def task_scores(self, without: Sequence[Result]) -> Iterator[TaskScores]:
        """The results of which no instances are at hand, as scores of whole tasks."""
        wanted = [
            result
            for result in self.results
            if result not in without
            and not (result.is_summary or math.isnan(result.value))
            and (not self.options.splits or result.split in (None, *self.options.splits))
        ]
        for metric in dict.fromkeys(one.metric for one in wanted):
            rows = [one for one in wanted if one.metric == metric]
            yield TaskScores(
                run=self.run,
                metric=metric,
                tasks=[row.task for row in rows],
                values=np.array([row.value for row in rows]),
                stderr=np.array([row.stderr for row in rows]),
                n_prompts=[row.n_prompts for row in rows],
            )

    def task(self, name: str) -> str:
        """The task that an evaluation_name means: without the benchmark before it."""
        benchmark = self.benchmark or ""
        if (
            benchmark
            and name[: len(benchmark)] == benchmark
            and name[len(benchmark) : len(benchmark) + 1] in (".", "/", ":")
        ):
            return name[len(benchmark) :].strip("./: ") or name
        return name

    def _result(self, place: int, one: Mapping[str, Any]) -> Result:
        name = text(one.get("evaluation_name")) or text(one.get("evaluation_result_id"))
        if name is None:
            raise BadInputError(self.path, f"evaluation_results[{place}] has no evaluation_name.")
        source, details = mapping(one.get("source_data")), mapping(one.get("score_details"))
        config = mapping(one.get("metric_config"))
        added = mapping(source.get("additional_details")).get(ours.TASK)
        scale = 0.01 if not self.is_ours and is_percent(config) else 1.0
        value = self._number(details.get("score"), f"evaluation_results[{place}].score_details.score")
        if config.get("score_type") == "levels" and config.get("has_unknown_level") is True and value == -1:
            value = math.nan
        doubt = mapping(details.get("uncertainty"))
        stderr = doubt.get("standard_error")
        stderr = number(stderr.get("value") if isinstance(stderr, dict) else stderr)
        return Result(
            id=text(one.get("evaluation_result_id")),
            name=name,
            task=added if isinstance(added, str) else self.task(name),
            metric=metric_of(config, scale, self.options, as_written=self.is_ours),
            scale=scale,
            value=value * scale,
            stderr=math.nan if stderr is None or stderr < 0 else stderr * scale,
            n_prompts=count(doubt.get("num_samples")) or count(source.get("samples_number")),
            split=text(source.get("hf_split")),
            is_summary=ours.SUMMARY in mapping(details.get("details")),
        )

    def _told_apart(self, results: list[Result]) -> list[Result]:
        """The results with one description for each metric, and one metric for each result of a task."""
        same: dict[str, list[Result]] = {}
        for one in results:
            same.setdefault(one.metric.name, []).append(one)
        described = {name: self._agreed([one.metric for one in those]) for name, those in same.items()}
        taken: dict[tuple[str, str, bool], Result] = {}
        apart = []
        for one in results:
            metric = described[one.metric.name].get(one.metric.higher_is_better, one.metric)
            one = replace(one, metric=metric)
            before = taken.get((one.task, metric.name, one.is_summary))
            # Published for whole tasks beside what the prompts give, as our export writes it, is no second metric.
            if before is not None and not (self.is_ours or are_one(before, one)):
                again = f"{metric.name}#{sum(key[0] == one.task for key in taken) + 1}"
                named = one.id if one.id and one.id != before.id else again
                one = replace(one, metric=replace(metric, name=named))
                self.warnings.append(f"{one.name} has a second result under {metric.name}: it is called {named}")
            taken.setdefault((one.task, one.metric.name, one.is_summary), one)
            apart.append(one)
        return apart

    def _agreed(self, told: list[MetricDescription]) -> dict[bool | None, MetricDescription]:
        """By direction: bounds on which all agree, and a name of its own for what is better the smaller it is."""
        directions = {one.higher_is_better for one in told}
        found = {}
        for better in directions:
            lowers = {one.lower for one in told if one.higher_is_better == better}
            uppers = {one.upper for one in told if one.higher_is_better == better}
            name = told[0].name if len(directions) == 1 or better is not False else f"{told[0].name} (lower is better)"
            found[better] = MetricDescription(
                name=name,
                higher_is_better=better,
                lower=lowers.pop() if len(lowers) == 1 else None,
                upper=uppers.pop() if len(uppers) == 1 else None,
            )
        if any(one not in found.values() for one in told):
            self.warnings.append(
                f"{told[0].name}: its results disagree on bounds or direction; only what all say was taken"
            )
        return found

    def _number(self, value: Any, what: str) -> float:
        try:
            return score(value)
        except ValueError as error:
            raise BadInputError(self.path, f"{what} is {error}.") from error

    @property
    def _started(self) -> Any:
        if self.is_ours:
            return instant(self.added.get(ours.STARTED))
        first = next((one for one in self.data.get("evaluation_results") or () if isinstance(one, dict)), {})
        return instant(self.data.get("evaluation_timestamp")) or instant(first.get("evaluation_timestamp"))

    @property
    def _settings(self) -> dict[str, Any]:
        if self.is_ours:
            try:
                return mapping(json.loads(self.added.get(ours.SETTINGS) or "{}"))
            except (ValueError, TypeError, RecursionError):
                return {}
        results = [mapping(one) for one in self.data.get("evaluation_results") or ()]
        configs = [result.get("generation_config") for result in results]
        said = {
            "generation_config": configs[0] if configs and all(config == configs[0] for config in configs) else None,
            "source": mapping(self.data.get("source_metadata")).get("source_organization_name"),
        }
        info = mapping(self.data.get("model_info"))
        said |= {name: info.get(name) for name in ("inference_platform", "inference_engine")}
        return {name: told for name, value in said.items() if (told := setting(value)) not in (None, ours.UNKNOWN)}

    @property
    def _model_facts(self) -> dict[str, Any]:
        info = mapping(self.data.get("model_info"))
        details = mapping(info.get("additional_details"))
        facts: dict[str, Any] = {}
        developer = text(info.get("developer"))
        if developer and developer.lower() != ours.UNKNOWN:
            facts["organization"] = developer
        weights = details.get("model_availability")
        if weights in ("open_weights", "closed_weights"):
            facts["open_weights"] = weights == "open_weights"
        for name, unit in (("parameters", 1), ("params_billions", 10**9)):
            told = details.get(name)
            size = number(told) if not isinstance(told, str) else _parsed(told)
            if size is not None and 1 <= size * unit < 2**53 and "parameters" not in facts:
                facts["parameters"] = round(size * unit)
        if self.is_ours:
            facts |= {name: said for name in ("family", "released") if (said := text(details.get(name)))}
        return facts


def _parsed(said: str) -> float | None:
    try:
        return number(float(said))
    except ValueError:
        return None
