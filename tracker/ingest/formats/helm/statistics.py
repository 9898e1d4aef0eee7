"""per_instance_stats.json: the scores; and stats.json: the reported scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, PromptContent, describe_policy
from tracker.ingest.files.json_files import parse_json
from tracker.ingest.files.json_values import count, identity, mapping, number, score, text
from tracker.ingest.files.tabular.cells import shorten
from tracker.ingest.formats.helm.metrics import describe_metric
from tracker.ingest.formats.helm.run_folder import NAMESPACE, HelmRunFolder, parse_variant, read_pieces
from tracker.ingest.formats.helm.states import MAX_PROBLEMS, ScenarioStates, full, rest
from tracker.ingest.measurement import Measurement, MetricDescription, metric_description
from tracker.ingest.reported_score import CORPUS, CORPUS_METRICS, ReportedScore
from tracker.option_labels import option_letter

PREDICTED = "predicted_index"
"""Statistic of the chosen option if each option is a separate request."""
MAX_NAMES = 4


class InstanceStatistics:
    """Reads the scores of a run.

    Args:
        folder: its files.
        states: its requests, already read.
    """

    def __init__(self, folder: HelmRunFolder, states: ScenarioStates) -> None:
        self.folder, self.states = folder, states
        self._metrics: dict[str, MetricDescription | None] = {}
        self._passed: set[str] = set()
        self._gathered: dict[str, BlockBuilder] = {}
        self._problems: list[str] = []
        self._n_problems = 0
        self._lacking: dict[str, set[tuple[str, str, int]]] = {ERRORED: set(), EMPTY: set()}

    def blocks(self) -> Iterator[Measurement | ReportedScore | str]:
        """Yield scores, then warnings and reported scores.

        Raises:
            BadInputError: the file is invalid.
        """
        path = self.folder.path
        try:
            for number_of, (_, data) in enumerate(read_pieces(path), start=1):
                self._add(parse_json(path, data, f"entry {number_of}"), f"entry {number_of}")
                yield from full(self._gathered.values())
        except BadInputError:
            yield from rest(self._gathered.values())
            raise
        if self._policy(ERRORED) == "wrong":
            self._score_failed()
        yield from rest(self._gathered.values())
        if self._problems:
            raise BadInputError(path, self._problems, count=self._n_problems)
        yield from self._warnings()
        yield from self._reported_scores()

    def _add(self, entry: Any, where: str) -> None:
        entry = mapping(entry)
        key, trial = identity(entry.get("instance_id")), count(entry.get("train_trial_index", 0))
        stats = entry.get("stats")
        if key is None or trial is None or not isinstance(stats, list):
            lack = (
                "it has no list stats" if trial is not None else "train_trial_index is not a whole number of at least 0"
            )
            lack = lack if key is not None else "it has no instance_id"
            self._add_problem(f"{where}: {lack}")
            return
        where = f"{where} (instance {key!r})"
        for stat in stats:
            stat_name = stat.get("name") if isinstance(stat, dict) else None
            name = stat_name.get("name") if isinstance(stat_name, dict) else None
            if isinstance(name, str) and name in self._passed:
                continue  # most statistics are not scores and can be skipped
            self._add_stat(mapping(stat), key, trial, entry.get("perturbation"), where)

    def _add_stat(self, stat: Mapping[str, Any], key: str, trial: int, perturbation: Any, where: str) -> None:
        stat_name = mapping(stat.get("name"))
        name, split = text(stat_name.get("name")), text(stat_name.get("split"))
        perturbed_by = parse_variant(stat_name.get("perturbation") or perturbation)
        if name is None or perturbed_by is None or not self.folder.takes(split):
            if name is None:
                self._add_problem(f"{where}: a statistic without a name")
            return
        if name not in self._metrics:
            self._metrics[name] = describe_metric(name, self.folder.options)
        metric = self._metrics[name]
        if metric is None and not (name == PREDICTED and self.folder.scores_options_separately):
            self._passed.add(name)
            return
        try:
            value = _mean(stat)
        except ValueError as error:
            self._add_problem(f"{where}: {name} is {error}")
            return
        if perturbed_by not in self._gathered:
            self._gathered[perturbed_by] = BlockBuilder(self.folder.run(perturbed_by), NAMESPACE, self.folder.path.name)
        builder = self._gathered[perturbed_by]
        row = builder.row(self.folder.task, key, trial, PromptContent(split=split))
        place = (key, perturbed_by, trial)
        try:
            if metric is None:
                if value >= 0 and value == int(value) and self.states.lacking.get(place) != ERRORED:
                    builder.answer(row, option_letter(int(value)))
                return
            low, high = metric.lower, metric.upper
            if (low is not None and value < low) or (high is not None and value > high):
                bounds = f"[{'-∞' if low is None else f'{low:g}'}, {'∞' if high is None else f'{high:g}'}]"
                self._add_problem(f"{where}: {name} is {value:g}, outside {bounds}")
                return
            counted = self._as_agreed(value, place)
            builder.score(row, metric, counted)
            if counted != value:
                builder.log(row, metric, value)
        except ValueError as error:
            self._add_problem(f"{where}: {error}")

    def _as_agreed(self, value: float, place: tuple[str, str, int]) -> float:
        """Return the score after applying the policies for failed and empty answers."""
        lack = self.states.lacking.get(place)
        if lack is None:
            return value
        self._lacking[lack].add(place)
        if self._policy(lack) == "missing":
            return math.nan
        return 0.0 if lack == ERRORED and math.isnan(value) else value

    def _score_failed(self) -> None:
        """Yield zeros for failed requests without statistics."""
        metrics = [metric for metric in self._metrics.values() if metric is not None]
        failed = [place for place, lack in self.states.lacking.items() if lack == ERRORED]
        for place in failed:
            key, perturbed_by, trial = place
            if place not in self._lacking[ERRORED] and perturbed_by in self._gathered:
                row = self._gathered[perturbed_by].row(self.folder.task, key, trial)
                for metric in metrics:
                    self._gathered[perturbed_by].score(row, metric, 0.0)
                    self._gathered[perturbed_by].log(row, metric, math.nan)

    def _policy(self, kind: str) -> str:
        options = self.folder.options
        return options.errored or "missing" if kind == ERRORED else options.empty or "wrong"

    def _add_problem(self, problem: str) -> None:
        self._n_problems += 1
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)

    def _warnings(self) -> Iterator[str]:
        passed = [name for name, metric in self._metrics.items() if metric is None and name != PREDICTED]
        if passed:
            some = ", ".join(map(shorten, passed[:MAX_NAMES])) + (", …" if len(passed) > MAX_NAMES else "")
            phrase = "statistic that is not a score was" if len(passed) == 1 else "statistics that are not scores were"
            yield f"{len(passed)} {phrase} skipped ({some}); store one with --metric NAME"
        for kind, phrase in ((ERRORED, "request failed|requests failed"), (EMPTY, "answer is empty|answers are empty")):
            places = [place for place, lack in self.states.lacking.items() if lack == kind]
            if n := len(places if kind == ERRORED else self._lacking[kind]):
                yield describe_policy(n, kind, self._policy(kind), phrase)

    def _reported_scores(self) -> Iterator[ReportedScore]:
        """Yield the means of stats.json: over the instances of each trial, then over the trials."""
        path = self.folder.beside("stats.json")
        if path is None:
            return
        for number_of, (_, data) in enumerate(read_pieces(path), start=1):
            stat = mapping(parse_json(path, data, f"entry {number_of}"))
            stat_name = mapping(stat.get("name"))
            name, split, value = text(stat_name.get("name")), text(stat_name.get("split")), number(stat.get("mean"))
            if name is None or value is None or stat_name.get("sub_split") is not None:
                continue
            if stat_name.get("perturbation") or not self.folder.takes(split):
                continue
            # Other scenarios report perplexities of nothing, 1.
            is_corpus = name in CORPUS_METRICS and self.folder.method == "language_modeling"
            metric = metric_description(name, self.folder.options) if is_corpus else self._metrics.get(name)
            if metric is not None:
                yield ReportedScore(
                    run=self.folder.run(""),
                    metric=metric,
                    tasks=(self.folder.task,),
                    value=value,
                    aggregations=CORPUS if is_corpus else ("trial_mean",),
                    split=split,
                    name=name,
                )


def _mean(stat: Mapping[str, Any]) -> float:
    """Return the statistic's mean, or sum over count; NaN if the count is 0.

    Raises:
        ValueError: the statistic is not a number.
    """
    if "mean" in stat:
        return score(stat["mean"])
    n = number(stat.get("count"))
    mean = score(stat.get("sum")) / n if n else math.nan
    if math.isinf(mean):
        raise ValueError("a sum over a count, too large to be a score")
    return mean
