"""SMART filtering as the paper and notes on its authors' code describe it, slowly, in loops.

What is flagged, by which models, in which groups; and how many of each group go. Which of a group go is random, and so
no part of this. Sections are those of Gupta et al. 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from scipy.signal import find_peaks
from scipy.stats import gaussian_kde
from small_benchmarks import SmallBenchmark

DEFAULTS: dict[str, Any] = {
    "duplicates": "full",
    "exclude_task": (),
    "n_models": 7,
    "open_only": False,
    "allow_unknown": False,
    "confidence": 0.8,
    "probability": None,
    "without_confidence": False,
    "retain": 0.1,
    "without_similar": False,
    "n_neighbours": 100,
    "bandwidth": 0.15,
    "unimodal": "keep",
    "threshold": None,
    "groups": "components",
    "protect_lexical": 0.8,
    "largest_group": 0.05,
}


class RefusedError(Exception):
    """The question cannot be answered; the text is a regular expression of what has to be said."""


@dataclass
class Plain:
    """What has to come out.

    Attributes:
        rows: of the benchmark, those that have any score.
        filter_models: names, the best first.
        kind: of probability, '' where right and wrong alone decide.
        flagged: rows by step; a step that is not taken is missing.
        groups: of like rows by step.
        n_removed: by step.
        threshold: below which prompts are similar, if there is one.
        unit: what thresholds are multiples of.
        n_pairs, largest: strictly nearer pairs, and the size of the largest group.
    """

    rows: list[int]
    filter_models: list[str]
    kind: str
    flagged: dict[str, set[int]] = field(default_factory=dict)
    groups: dict[str, list[set[int]]] = field(default_factory=dict)
    n_removed: dict[str, int] = field(default_factory=dict)
    threshold: float | None = None
    unit: float = 0.0
    n_pairs: int = 0
    largest: int = 0


def plain_smart(b: SmallBenchmark, *, near: float | None = None, **changes: Any) -> Plain:
    """All steps of a filter.

    Args:
        b: the benchmark.
        near: a threshold to go by; it must agree with the one found here, which is a multiple of a small unit.
        changes: options of the question that differ from their defaults.
    """
    o = DEFAULTS | changes
    rows = [i for i in range(len(b.scores)) if any(not math.isnan(v) for v in b.scores[i])]
    if b.vectors is None and not o["without_similar"]:
        raise RefusedError("suffrage embed b.*--without-similar")
    columns = _filter_models(b, rows, o)
    kind = "" if o["without_confidence"] else _kind(b, rows, columns, o["probability"])
    result = Plain(rows=rows, filter_models=[b.models[j] for j in columns], kind=kind)

    groups = _duplicates(b, rows, o["duplicates"])  # 3.1: one of each stays
    result.groups["duplicate"] = groups
    result.flagged["duplicate"] = {i for group in groups for i in group}
    result.n_removed["duplicate"] = sum(len(group) - 1 for group in groups)

    result.flagged["anomalous"] = {i for i in rows if b.tasks[i] in o["exclude_task"]}
    result.n_removed["anomalous"] = len(result.flagged["anomalous"])

    gold = b.gold.get(kind)  # 3.2: a random part is retained
    easy = {i for i in rows if all(_right(b.scores, gold, i, j, o["confidence"]) for j in columns)}
    result.flagged["easy"] = easy
    result.n_removed["easy"] = len(easy) - round(o["retain"] * len(easy))

    if _has_blind(b, rows, columns, kind):  # 3.3
        assert b.blind is not None
        sure = b.blind_gold.get(kind)
        leaked = {i for i in rows if all(_right(b.blind, sure, i, j, o["confidence"]) for j in columns)}
        result.flagged["contaminated"] = leaked
        result.n_removed["contaminated"] = len(leaked)

    if not kind or all(
        any(not math.isnan(b.answer_probability[i, j]) for i in rows) for j in columns
    ):  # A.2: reported only
        answer_probability = b.answer_probability if kind else None
        wrong = 1 - b.scores
        result.flagged["suspect-label"] = {
            i for i in rows if all(_right(wrong, answer_probability, i, j, o["confidence"]) for j in columns)
        }
        result.n_removed["suspect-label"] = 0

    if not o["without_similar"]:
        _similar(b, rows, o, near, result)
    return result


def _right(scores: np.ndarray, sure: np.ndarray | None, i: int, j: int, confidence: float) -> bool:
    return bool(scores[i, j] == 1 and (sure is None or sure[i, j] > confidence))


def _filter_models(b: SmallBenchmark, rows: list[int], o: dict[str, Any]) -> list[int]:
    """The columns of the models that filter: the best of different organizations, section 4."""

    def mean(j: int) -> float:
        scores = [b.scores[i, j] for i in rows if not math.isnan(b.scores[i, j])]
        return sum(scores) / len(scores)

    if b.named_models:
        for name in b.named_models:
            if name not in b.models:
                raise RefusedError(f"No model with such scores '{name}'")
        return sorted((b.models.index(name) for name in b.named_models), key=lambda j: -mean(j))
    able = [j for j in range(len(b.models)) if all(not math.isnan(b.scores[i, j]) for i in rows)]
    if o["open_only"]:
        able = [j for j in able if b.models[j] not in b.makers or b.makers[b.models[j]].open_weights is not False]
    chosen: list[int] = []
    used_makers: set[str] = set()
    for j in sorted(able, key=lambda j: -mean(j)):
        if len(chosen) == o["n_models"]:
            break
        maker = b.makers.get(b.models[j])
        name = maker.organization if maker else None
        if name is None or name not in used_makers:
            chosen.append(j)
        if name is not None:
            used_makers.add(name)
    if not o["allow_unknown"]:
        for j in chosen:
            maker = b.makers.get(b.models[j])
            if maker is None or maker.organization is None:
                raise RefusedError(f"For {b.models[j]},.*its organization.*import.*--models.*--allow-unknown")
            if o["open_only"] and maker.open_weights is None:
                raise RefusedError(f"For {b.models[j]},.*whether its weights are open.*--allow-unknown")
    if len(chosen) < o["n_models"]:
        counted = f"Too few filter models: {len(chosen)} .*models?"
        raise RefusedError(f"{counted} .*with a score for each.*--n-models.*--models")
    return chosen


def _kind(b: SmallBenchmark, rows: list[int], columns: list[int], requested: str | None) -> str:
    for kind in [requested] if requested else ["letters", "likelihoods"]:
        stored = b.gold.get(kind)
        if stored is not None and all(any(not math.isnan(stored[i, j]) for i in rows) for j in columns):
            return kind
    raise RefusedError("No probability of the gold answer.*docs/reference/formats.md.*--models.*--without-confidence")


def _has_blind(b: SmallBenchmark, rows: list[int], columns: list[int], kind: str) -> bool:
    stored = [b.blind, b.blind_gold.get(kind)] if kind else [b.blind]
    return all(
        matrix is not None and any(not math.isnan(matrix[i, j]) for i in rows) for matrix in stored for j in columns
    )


def _duplicates(b: SmallBenchmark, rows: list[int], by: str) -> list[set[int]]:
    """A.3. Texts here are plain letters, so that case and spaces are all that may differ."""
    equal: dict[tuple[str, ...], set[int]] = {}
    for i in rows:
        text = " ".join((b.texts[i] or "").lower().split())
        if text:
            offered = [" ".join(choice.lower().split()) for choice in b.choices[i] or []] if by == "full" else []
            equal.setdefault((text, *offered), set()).add(i)
    return [group for group in equal.values() if len(group) > 1]


def _similar(b: SmallBenchmark, rows: list[int], o: dict[str, Any], near: float | None, result: Plain) -> None:
    """3.4 and A.1."""
    assert b.vectors is not None
    D = _distances(b.vectors[rows].astype(np.float32).astype(np.float64))
    n = len(rows)
    texts = [b.texts[i] or "" for i in rows]
    is_star = o["groups"] == "stars"
    kept: list[float] = []
    for i in range(n):
        nearest = sorted((j for j in range(n) if j != i), key=D[i].tolist().__getitem__)[: o["n_neighbours"]]
        if is_star:  # the authors begin at the first neighbour whose question reads differently
            is_similar = [_ratio(texts[i], texts[j]) > o["protect_lexical"] for j in nearest]
            nearest = nearest[is_similar.index(False) :] if False in is_similar else []
        kept += [float(D[i, j]) for j in nearest]
    value, result.unit = first_maximum(np.array(kept), o["bandwidth"], o["unimodal"])
    result.threshold = value if o["threshold"] is None else o["threshold"]
    if result.threshold is None:
        return
    below = result.threshold if near is None else near
    pairs = {
        (i, j) for i, row in enumerate(D.tolist()) for j, distance in enumerate(row) if i != j and distance < below
    }
    result.n_pairs = len(pairs) // 2
    places = _stars(n, pairs, texts, o["protect_lexical"]) if is_star else _components(n, pairs)
    result.largest = max(map(len, places), default=0)
    if result.largest > o["largest_group"] * n:
        return
    groups = [{rows[place] for place in group} for group in places]
    result.groups["similar"] = groups
    result.flagged["similar"] = {i for group in groups for i in group}
    result.n_removed["similar"] = sum(len(group) // 2 for group in groups)


def _distances(E: np.ndarray) -> np.ndarray:
    D, squares = np.zeros((len(E), len(E))), [float(row @ row) for row in E]
    for i in range(len(E)):
        for j in range(i):
            D[i, j] = D[j, i] = 1 - float(E[i] @ E[j]) / math.sqrt(squares[i] * squares[j])
    return D


def first_maximum(distances: np.ndarray, factor: float, unimodal: str) -> tuple[float | None, float]:
    """Where the density, reflected at 0, has its first maximum above 0; and what thresholds are multiples of."""
    if len(distances) < 2 or np.ptp(distances) == 0:
        return None, 0.0
    smooth = gaussian_kde(distances, bw_method=factor)
    bandwidth = factor * float(distances.std(ddof=1))

    def f(x: Any) -> Any:
        return smooth(x) + smooth(-np.asarray(x))

    x = np.arange(0, distances.max() + 5 * bandwidth, bandwidth / 16)
    values = f(x)
    mirrored = np.concatenate([values[:0:-1], values])
    peaks, _ = find_peaks(mirrored, prominence=1e-6 * values.max())
    maxima = [x[place] for place in peaks - len(values) + 1 if place > 0]
    if not maxima:
        return None, bandwidth / 100
    top = maxima[0]
    for step in (bandwidth / 16, bandwidth / 800):
        around = np.linspace(top - step, top + step, 101)
        top = around[np.argmax(f(around))]
    value = math.floor(top / (bandwidth / 100)) * bandwidth / 100
    return value / 2 if len(maxima) == 1 and unimodal == "half" else value, bandwidth / 100


def _components(n: int, pairs: set[tuple[int, int]]) -> list[set[int]]:
    """By walking from prompt to prompt."""
    near: dict[int, list[int]] = {i: [] for i in range(n)}
    for i, j in pairs:
        near[i].append(j)
    seen: set[int] = set()
    groups = []
    for start in range(n):
        if start in seen or not near[start]:
            continue
        group, ahead = {start}, [start]
        while ahead:
            for j in near[ahead.pop()]:
                if j not in group:
                    group.add(j)
                    ahead.append(j)
        seen |= group
        groups.append(group)
    return groups


def _stars(n: int, pairs: set[tuple[int, int]], texts: list[str], protect: float) -> list[set[int]]:
    """Each prompt in turn with all that are near; less those that read like it, less those in earlier stars."""
    seen: set[int] = set()
    groups = []
    for centre in range(n):
        star = {centre} | {
            j for j in range(n) if (centre, j) in pairs and not _ratio(texts[centre], texts[j]) > protect
        }
        star -= seen
        if len(star) >= 2:
            groups.append(star)
            seen |= star
    return groups


def _ratio(a: str, b: str) -> float:
    return SequenceMatcher(None, a, b).ratio()
