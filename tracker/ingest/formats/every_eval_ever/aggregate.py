"""The aggregate file: model, benchmark, metrics and results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.json_files import read_json
from tracker.ingest.files.json_values import (
    count,
    instant,
    mapping,
    number,
    parsed_number,
    printed_decimals,
    score,
    setting,
    text,
)
from tracker.ingest.formats.every_eval_ever import vocabulary
from tracker.ingest.formats.every_eval_ever.results import EvaluationResult, are_duplicates, describe_metric, is_percent
from tracker.ingest.formats.every_eval_ever.subtasks import (
    common_benchmark,
    evaluation_names,
    is_overall,
    metric_name,
    subtask,
)
from tracker.ingest.measurement import MetricDescription, ReadOptions, RunDescription
from tracker.ingest.reported_score import CORPUS, CORPUS_METRICS, MEANS, ReportedScore

READ_VERSIONS = ("0.2", "0.3")


class Aggregate:
    """An aggregate file, or the part of one that can be derived from instances.

    Args:
        path: the file, for messages.
        data: its content.
        options: how to read the file.
    """

    def __init__(self, path: Path, data: Mapping[str, Any], options: ReadOptions) -> None:
        self.path, self.data, self.options = path, data, options
        self.warnings: list[str] = []

    @classmethod
    def read(cls, path: Path, options: ReadOptions) -> Aggregate:
        """Read an aggregate file.

        Raises:
            BadInputError: the file is not JSON or not an aggregate.
        """
        data = read_json(path)
        if not isinstance(data, dict) or not isinstance(data.get("evaluation_results"), list):
            raise BadInputError(path, "has no list evaluation_results, so it is not an aggregate of Every Eval Ever.")
        return cls(path, data, options)

    @property
    def id(self) -> str | None:
        """Return its evaluation_id."""
        return text(self.data.get("evaluation_id"))

    @property
    def model_id(self) -> str | None:
        """Return the name of the model in the file."""
        info = mapping(self.data.get("model_info"))
        return text(info.get("id")) or text(info.get("name"))

    @cached_property
    def added(self) -> Mapping[str, Any]:
        """Return the additional details of the source, including those of Suffrage."""
        return mapping(mapping(self.data.get("source_metadata")).get("additional_details"))

    @property
    def is_ours(self) -> bool:
        """Return whether Suffrage exported the file."""
        return vocabulary.BENCHMARK in self.added

    @cached_property
    def benchmark(self) -> str | None:
        """Return the benchmark: our own field, that of the evaluation_id or of all names, or the source."""
        parts = (self.id or "").split("/")
        names = evaluation_names(self.data)
        return (
            self.options.benchmark
            or text(self.added.get(vocabulary.BENCHMARK))
            or (text(parts[0]) if len(parts) > 2 else None)
            or common_benchmark(names)
            or text(mapping(self.data.get("source_metadata")).get("source_name"))
            or (names[0] if len(set(names)) == 1 else None)
        )

    @cached_property
    def run(self) -> RunDescription:
        """Return the run.

        Raises:
            BadInputError: the file does not name the model.
        """
        model = self.options.model or self.model_id
        if model is None:
            raise BadInputError(
                self.path, "model_info does not name a model.", advice="Name the model with --model NAME."
            )
        parts = (self.id or "").split("/")
        label = self.added.get(vocabulary.LABEL)
        n_examples = self.added.get(vocabulary.FEW_SHOT)
        return RunDescription(
            model=model,
            benchmark=self.benchmark,
            condition=self.options.condition
            or ("answer_only" if self.added.get(vocabulary.CONDITION) == "answer_only" else "full"),
            variant=text(self.added.get(vocabulary.VARIANT)) or "",
            label=label if isinstance(label, str) else (parts[-1] if len(parts) > 2 else self.id or ""),
            few_shot=int(n_examples)
            if isinstance(n_examples, str) and n_examples.isdecimal() and len(n_examples) < 9
            else None,
            settings=self._settings,
            limited=self.added.get(vocabulary.LIMITED) == "true",
            started=self._started,
            model_facts=self._model_facts,
        )

    @cached_property
    def results(self) -> list[EvaluationResult]:
        """Return its results with unique names for each task and metric.

        Raises:
            BadInputError: a result is invalid, or its score is not a number.
        """
        results: list[EvaluationResult] = []
        for place, record in enumerate(self.data.get("evaluation_results") or ()):
            if not isinstance(record, dict):
                raise BadInputError(self.path, f"evaluation_results[{place}] is not an object.")
            results.append(self._result(place, record))
        return self._disambiguated(results)

    def reported_scores(self, sampled: Sequence[EvaluationResult], *, is_part: bool) -> Iterator[ReportedScore]:
        """Yield the results.

        Args:
            sampled: those with instances.
            is_part: whether instances were skipped, so that they are not compared.
        """
        for result in self.results:
            if result.is_summary or math.isnan(result.value) or (is_part and result in sampled):
                continue
            if result not in sampled and self.options.splits and result.split not in (None, *self.options.splits):
                continue
            has_rows = result in sampled and result.rows == result.metric
            yield ReportedScore(
                run=self.run,
                metric=result.metric,
                tasks=(result.task,),
                value=result.value,
                stderr=result.stderr,
                aggregations=MEANS if has_rows else CORPUS,
                decimals=result.decimals,
                n_prompts=result.n_prompts,
                name=f"{result.metric.name} ({result.name})",
            )

    def task(self, name: str) -> str:
        """Return the task of an evaluation_name, without the name of the benchmark."""
        return subtask(name, self.benchmark or "")

    @cached_property
    def _has_subtasks(self) -> bool:
        """Return whether the results are subtasks of the benchmark, so that a result for all of it summarizes them."""
        names = evaluation_names(self.data)
        return not self.is_ours and sum(self.task(name) != name for name in set(names)) > 1

    def _result(self, place: int, record: Mapping[str, Any]) -> EvaluationResult:
        name = text(record.get("evaluation_name")) or text(record.get("evaluation_result_id"))
        if name is None:
            raise BadInputError(self.path, f"evaluation_results[{place}] has no evaluation_name.")
        source, details = mapping(record.get("source_data")), mapping(record.get("score_details"))
        config = mapping(record.get("metric_config"))
        added = mapping(source.get("additional_details")).get(vocabulary.TASK)
        scale = 0.01 if not self.is_ours and is_percent(config) else 1.0
        try:
            value = score(details.get("score"))
        except ValueError as error:
            raise BadInputError(self.path, f"evaluation_results[{place}].score_details.score is {error}.") from error
        if config.get("score_type") == "levels" and config.get("has_unknown_level") is True and value == -1:
            value = math.nan
        doubt = mapping(details.get("uncertainty"))
        stderr = doubt.get("standard_error")
        stderr = number(stderr.get("value") if isinstance(stderr, dict) else stderr)
        benchmark = self.benchmark or ""
        metric = text(config.get("metric_id")) if self.is_ours else metric_name(config, name, benchmark)
        return EvaluationResult(
            id=text(record.get("evaluation_result_id")),
            name=name,
            task=added if isinstance(added, str) else self.task(name),
            metric=describe_metric(metric, config, scale, self.options, as_written=self.is_ours),
            scale=scale,
            value=value * scale,
            stderr=math.nan if stderr is None or stderr < 0 else stderr * scale,
            n_prompts=count(doubt.get("num_samples")) or count(source.get("samples_number")),
            split=text(source.get("hf_split")),
            is_summary=vocabulary.SUMMARY in mapping(details.get("details"))
            or (self._has_subtasks and is_overall(name, benchmark)),
            decimals=_decimals(value, is_percent=scale != 1),
            averages_rows=self.is_ours or text(config.get("metric_id")) not in CORPUS_METRICS,
        )

    def _disambiguated(self, results: list[EvaluationResult]) -> list[EvaluationResult]:
        """Return the results with one description per metric, and one metric per result of a task."""
        same: dict[str, list[EvaluationResult]] = {}
        for result in results:
            same.setdefault(result.metric.name, []).append(result)
        described = {name: self._agreed([result.metric for result in same_name]) for name, same_name in same.items()}
        seen: dict[tuple[str, str, bool], EvaluationResult] = {}
        distinct = []
        for result in results:
            metric = described[result.metric.name].get(result.metric.higher_is_better, result.metric)
            result = replace(result, metric=metric)
            before = seen.get((result.task, metric.name, result.is_summary))
            # Our export writes published task scores beside those of the prompts; that is not a second metric.
            if before is not None and not (self.is_ours or are_duplicates(before, result)):
                again = f"{metric.name}#{sum(key[0] == result.task for key in seen) + 1}"
                new_name = result.id if result.id and result.id != before.id else again
                result = replace(result, metric=replace(metric, name=new_name))
                self.warnings.append(f"{result.name} has a second result for {metric.name}; it is stored as {new_name}")
            seen.setdefault((result.task, result.metric.name, result.is_summary), result)
            distinct.append(result)
        return distinct

    def _agreed(self, descriptions: list[MetricDescription]) -> dict[bool | None, MetricDescription]:
        """Return bounds on which all results agree, with separate names for metrics where lower is better."""
        directions = {metric.higher_is_better for metric in descriptions}
        agreed = {}
        for better in directions:
            lowers = {metric.lower for metric in descriptions if metric.higher_is_better == better}
            uppers = {metric.upper for metric in descriptions if metric.higher_is_better == better}
            name = (
                descriptions[0].name
                if len(directions) == 1 or better is not False
                else f"{descriptions[0].name} (lower is better)"
            )
            agreed[better] = MetricDescription(
                name=name,
                higher_is_better=better,
                lower=lowers.pop() if len(lowers) == 1 else None,
                upper=uppers.pop() if len(uppers) == 1 else None,
            )
        if any(metric not in agreed.values() for metric in descriptions):
            self.warnings.append(
                f"{descriptions[0].name}: its results disagree on bounds or direction; only common values are stored"
            )
        return agreed

    @property
    def _started(self) -> Any:
        if self.is_ours:
            return instant(self.added.get(vocabulary.STARTED))
        first = next((result for result in self.data.get("evaluation_results") or () if isinstance(result, dict)), {})
        return instant(self.data.get("evaluation_timestamp")) or instant(first.get("evaluation_timestamp"))

    @property
    def _settings(self) -> dict[str, Any]:
        if self.is_ours:
            try:
                return mapping(json.loads(self.added.get(vocabulary.SETTINGS) or "{}"))
            except (ValueError, TypeError, RecursionError):
                return {}
        results = [mapping(result) for result in self.data.get("evaluation_results") or ()]
        configs = [result.get("generation_config") for result in results]
        settings = {
            "generation_config": configs[0] if configs and all(config == configs[0] for config in configs) else None,
            "source": mapping(self.data.get("source_metadata")).get("source_organization_name"),
        }
        info = mapping(self.data.get("model_info"))
        settings |= {name: info.get(name) for name in ("inference_platform", "inference_engine")}
        return {
            name: cleaned
            for name, value in settings.items()
            if (cleaned := setting(value)) not in (None, vocabulary.UNKNOWN)
        }

    @property
    def _model_facts(self) -> dict[str, Any]:
        info = mapping(self.data.get("model_info"))
        details = mapping(info.get("additional_details"))
        facts: dict[str, Any] = {}
        developer = text(info.get("developer"))
        if developer and developer.lower() != vocabulary.UNKNOWN:
            facts["organization"] = developer
        weights = details.get("model_availability")
        if weights in ("open_weights", "closed_weights"):
            facts["open_weights"] = weights == "open_weights"
        for name, unit in (("parameters", 1), ("params_billions", 10**9)):
            entry = details.get(name)
            size = parsed_number(entry)
            if size is not None and 1 <= size * unit < 2**53 and "parameters" not in facts:
                facts["parameters"] = round(size * unit)
        if self.is_ours:
            facts |= {name: fact for name in ("family", "released") if (fact := text(details.get(name)))}
        return facts


def _decimals(value: float, *, is_percent: bool) -> int | None:
    """Return the number of decimals of a stored value that the file prints, at least three."""
    if is_percent:
        decimals = printed_decimals(value, 1)
        return None if decimals is None else decimals + 2
    return printed_decimals(value, 3)
