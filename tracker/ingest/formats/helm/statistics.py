"""per_instance_stats.json: the scores; and stats.json, which is compared with them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tracker.errors import BadInputError
from tracker.ingest.files.block_builder import EMPTY, ERRORED, BlockBuilder, PromptContent, describe_policy
from tracker.ingest.files.json_files import parse_json
from tracker.ingest.files.json_values import contradicts, count, identity, mapping, number, score, text
from tracker.ingest.files.tabular.cells import shorten
from tracker.ingest.formats.helm.metrics import describe_metric
from tracker.ingest.formats.helm.run_folder import NAMESPACE, HelmRunFolder, parse_variant, read_pieces
from tracker.ingest.formats.helm.states import MAX_PROBLEMS, ScenarioStates, full, rest
from tracker.ingest.measurement import Measurement, MetricDescription
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
        self._sums: dict[tuple[str, str | None], dict[int, list[float]]] = defaultdict(dict)
        self._problems: list[str] = []
        self._n_problems = 0
        self._lacking: dict[str, set[tuple[str, str, int]]] = {ERRORED: set(), EMPTY: set()}

    def blocks(self) -> Iterator[Measurement | str]:
        """Yield scores, then warnings.

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
            builder.score(row, metric, self._as_agreed(value, place))
        except ValueError as error:
            self._add_problem(f"{where}: {error}")
            return
        if not perturbed_by and not math.isnan(value):
            total = self._sums[name, split].setdefault(trial, [0.0, 0.0])
            total[0] += value
            total[1] += 1

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
        yield from self._differing()

    def _differing(self) -> Iterator[str]:
        """Return the means that differ from stats.json: over the instances of each trial, then over the trials."""
        path = self.folder.beside("stats.json")
        if path is None:
            return
        differing: Counter[str] = Counter()
        first = ""
        for number_of, (_, data) in enumerate(read_pieces(path), start=1):
            stat = mapping(parse_json(path, data, f"entry {number_of}"))
            stat_name = mapping(stat.get("name"))
            name, reported = text(stat_name.get("name")), number(stat.get("mean"))
            trials = self._sums.get((name or "", text(stat_name.get("split"))))
            if stat_name.get("perturbation") or reported is None or not trials:
                continue
            recomputed = math.fsum(total / n for total, n in trials.values()) / len(trials)
            if contradicts(reported, recomputed):
                differing[str(name)] += 1
                first = first or f"{name} is {reported:g}, but the instances give {recomputed:g}"
        if differing:
            yield f"stats.json differs from the means of the instances for {len(differing)} metrics: {first}"


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
