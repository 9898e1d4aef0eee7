"""Samples of lm-evaluation-harness, read in the slow and obvious way: all lines first, then all columns."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from tracker.ingest.formats.lm_eval import documents

NOT_METRICS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash"}
Cell = tuple[str, str, float | str | None]


def plain_samples(path: Path) -> tuple[set[Cell], set[str], int]:
    """Metric (or extraction), prompt, and score (or answer); metrics that were passed over; lines that contradict."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    names: dict[tuple[Any, str], str] = {}
    equal: Counter[str] = Counter()
    for row in rows:
        key = documents.key(row)
        if (row["doc_id"], key) not in names:
            names[row["doc_id"], key] = f"{key}#{equal[key]}" if equal[key] else key
            equal[key] += 1
    first: dict[tuple[str, str], dict[str, Any]] = {}
    n_contradicting = 0
    for row in rows:
        place = (row["filter"], names[row["doc_id"], documents.key(row)])
        scores = {name: row[name] for name in row["metrics"] if name in row}
        if place not in first:
            first[place] = row
        elif {name: first[place].get(name) for name in first[place]["metrics"] if name in first[place]} != scores:
            n_contradicting += 1
    passed_over = {
        f"{row['filter']}:{name}"
        for row in first.values()
        for name in row["metrics"]
        if isinstance(row.get(name), list)
    }
    cells: set[Cell] = set()
    probable = None
    for (filter_name, prompt), row in first.items():
        for name in row["metrics"]:
            if row.get(name) is not None and f"{filter_name}:{name}" not in passed_over:
                cells.add((f"{name},{filter_name}", prompt, float(row[name])))
        sent = documents.requests(row)
        shares, gold = documents.probabilities(sent), documents.gold(row, sent)
        if shares is not None and gold is not None and probable in (None, filter_name):
            probable = filter_name
            cells.add(("probability", prompt, shares[gold]))
        output, _, spoke = documents.extract_answer(row, sent, shares)
        if spoke:
            cells.add((f"answer,{filter_name}", prompt, output))
    assert not any(isinstance(value, float) and math.isnan(value) for _, _, value in cells)
    return cells, passed_over, n_contradicting
