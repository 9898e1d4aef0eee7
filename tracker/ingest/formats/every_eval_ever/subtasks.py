"""Results named benchmark/subtask: their task, and their metric without the names of benchmark and subtask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tracker.ingest.files.json_values import mapping, text

SEPARATORS = (".", "/", ":")
OVERALL = re.compile(r"(?P<benchmark>.*?)[\s./:]*\(?(?:overall|average)\)?", re.IGNORECASE)
WORD = re.compile(r"[a-z0-9@+]+", re.IGNORECASE)
METRIC_FIELDS = ("metric_id", "metric_kind", "metric_name")


def common_benchmark(names: Sequence[str]) -> str | None:
    """Return the benchmark of several results named benchmark/subtask; None if they do not agree on one."""
    parts = {name.partition("/")[0].strip() for name in names if "/" in name}
    if len(parts) != 1 or sum("/" in name for name in names) < 2:
        return None
    benchmark = parts.pop()
    return benchmark if all("/" in name or is_overall(name, benchmark) for name in names) else None


def subtask(name: str, benchmark: str) -> str:
    """Return the task of an evaluation_name, without the name of the benchmark."""
    follows = name[len(benchmark) : len(benchmark) + 1]
    if benchmark and name.startswith(benchmark) and follows in SEPARATORS:
        return name[len(benchmark) :].strip("".join(SEPARATORS) + " ") or name
    return name


def is_overall(name: str, benchmark: str) -> bool:
    """Return whether a result covers its whole benchmark, such as ``mmlu (overall)``."""
    match = OVERALL.fullmatch(name)
    return _words(match["benchmark"] if match else name) in ([], _words(benchmark)) and bool(_words(name))


def metric_name(config: Mapping[str, Any], name: str, benchmark: str) -> str | None:
    """Return the name of a metric: the first of id, kind and name that is more than the names of the result.

    ``mmlu.law.accuracy`` of the result ``mmlu/law`` is ``accuracy``, so that all subtasks share a metric. Names of
    results that are no subtasks are not removed.
    """
    written = [value for field in METRIC_FIELDS if (value := text(config.get(field)))]
    if subtask(name, benchmark) == name and not is_overall(name, benchmark):
        return written[0] if written else None
    remainders = (_without(value, name, benchmark) for value in written)
    return next((remainder for remainder in remainders if remainder), None)


def evaluation_names(data: Mapping[str, Any]) -> list[str]:
    """Return the names of the results of an aggregate."""
    results = data.get("evaluation_results")
    records = results if isinstance(results, list) else []
    return [name for record in records if (name := text(mapping(record).get("evaluation_name")))]


def _without(metric: str, name: str, benchmark: str) -> str:
    """Return a metric without leading names of the result, its benchmark and its subtask; '' if nothing is left."""
    words = list(WORD.finditer(metric))
    start = 0
    for part in (name, benchmark, subtask(name, benchmark), "overall"):
        prefix = _words(part)
        if prefix and [word[0].lower() for word in words[start : start + len(prefix)]] == prefix:
            start += len(prefix)
    return metric[words[start].start() :].strip() if start < len(words) else ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in WORD.findall(name)]
