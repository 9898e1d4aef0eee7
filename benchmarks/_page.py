"""The page docs/performance.md, written from benchmarks/results.json."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "performance.md"

Measurement = Mapping[str, Any]

INTRODUCTION = """# Performance

The table of each benchmark holds every row of [benchmarks/results.json](../benchmarks/results.json).
`python -m benchmarks page` writes this page from that file; a test compares the two.

- **Suffrage**, **time of the peer**: the same work in the same run.
- **ratio**: the peer's time over that of Suffrage. Above 1, Suffrage is faster; below 1, the peer is.
- A row in italics has a stronger peer in another row of its table. Compare with that row.
- A row without a peer states only what the work costs.
- **MB**: peak memory above that of the process before the run, unless the details state another.

The machine has two shared cores. Ratios are comparable between runs on processors of one kind; seconds are not.
Reproduce a benchmark with `python -m benchmarks NAME`, all of them with `make bench`.
"""

PEERS = {
    "benchmark_growth": "NumPy, all similarities at once",
    "comparison": "SciPy",
    "filter_baselines": "girth",
    "embedding": "loop of `encode`",
    "prompt_clusters": "scikit-learn",
    "prompt_correlation": "SciPy `pdist`, `ks_2samp`",
    "prompt_weighting": "scikit-learn",
    "semantic_similarity": "SciPy `linregress`",
    "similar_prompts": "scikit-learn, brute force",
    "social_choice": "benchbench",
    "task_subsets": "SciPy `kendalltau` in a loop",
    "voting_rules": "SciPy `milp`",
    "weight_robustness": "NumPy `dirichlet` draws",
}
"""The peer of each benchmark whose rows do not name theirs."""

NEEDS_DEVICE = {
    "evaluation_gpu": (
        "CUDA",
        (
            "tokenising",
            "option scoring by log-likelihood and by letters, with fixed and with varying examples",
            "rows of 2,000 to 16,000 tokens",
            "generation of 128 tokens",
            "lm-evaluation-harness and vLLM on the same device",
        ),
    ),
    "prompt_correlation_gpu": (
        "CUDA",
        (
            "counts of all pairs of 100,000 prompts, of 1,000 and of 100 models",
            "the mean similarity of each of these prompts to all others",
            "one permuted table",
            "a test of 64 permutations, with one worker and with one for each core",
        ),
    ),
}
"""Benchmarks that need a device, and their rows: the page lists them as long as they are not measured."""

PEER_IN_NAME = re.compile(r",? (?:beside|against) (?P<peer>.+)$")
PEER_IN_DETAILS = re.compile(r"the peer is (?!scaled)(?P<peer>.+)$")
COLUMN_KEYS = {"name", "note", "peer", "ours_s", "peer_s", "ratio", "unit", "value"}
"""Keys of a measurement that have a column; the details hold the others."""
ONE_THREAD = {"peer_one_thread_s": "peer_s", "ratio_one_thread": "ratio"}
"""Where the peer is measured with one thread too, that is the stronger one if it is faster."""


def write_page(results: Mapping[str, Any]) -> str:
    """Return docs/performance.md.

    Args:
        results: by benchmark, the content of results.json.
    """
    missing = [name for name in NEEDS_DEVICE if name not in results]
    sections = {name: _section(name, results[name]["measurements"]) for name in results}
    sections |= {name: _section_without_results(name) for name in missing}
    return "\n".join([INTRODUCTION, *(sections[name] for name in sorted(sections))])


def _begin_section(name: str) -> str:
    text = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text()))
    assert text is not None
    return f"## {name.replace('_', ' ').capitalize()}\n\n{text}\n"


def _section_without_results(name: str) -> str:
    device, rows = NEEDS_DEVICE[name]
    lines = [f"- {row}: not measured" for row in rows]
    return "\n".join([_begin_section(name), f"No {device} device was available:\n", *lines, ""])


def _section(name: str, measurements: Iterable[Measurement]) -> str:
    rows = [_with_strongest_thread(measurement) for measurement in measurements]
    weaker = _find_weaker(rows)
    lines = [_row(row, _peer(name, row), is_weaker=i in weaker) for i, row in enumerate(rows)]
    table = ["| what | Suffrage | peer | time of the peer | ratio | details |", "|---|---|---|---|---|---|", *lines]
    return "\n".join([_begin_section(name), *table, ""])


def _with_strongest_thread(measurement: Measurement) -> Measurement:
    """The measurement with the faster of the peer's runs, with all threads or with one."""
    if measurement.get("peer_one_thread_s", float("inf")) >= measurement.get("peer_s", float("inf")):
        return measurement
    swapped = {**measurement, **{to: measurement[key] for key, to in ONE_THREAD.items()}}
    rest = {key: value for key, value in swapped.items() if key not in ONE_THREAD}
    return {**rest, "peer_all_threads_s": measurement["peer_s"]}


def _subject(row: Measurement) -> str:
    return PEER_IN_NAME.sub("", row["name"])


def _peer(name: str, row: Measurement) -> str:
    if "peer_s" not in row:
        return ""
    if "peer" in row:
        return str(row["peer"])
    stated = PEER_IN_NAME.search(row["name"]) or PEER_IN_DETAILS.search(row.get("note", ""))
    return stated["peer"] if stated else PEERS[name]


def _find_weaker(rows: list[Measurement]) -> set[int]:
    """Positions of the rows whose subject has a faster peer in another row."""
    fastest: dict[str, float] = {}
    for row in rows:
        if "peer_s" in row:
            fastest[_subject(row)] = min(row["peer_s"], fastest.get(_subject(row), row["peer_s"]))
    return {i for i, row in enumerate(rows) if "peer_s" in row and row["peer_s"] > fastest[_subject(row)]}


def _row(row: Measurement, peer: str, *, is_weaker: bool) -> str:
    has_peer = "peer_s" in row
    cost = format_seconds(row["ours_s"]) if "ours_s" in row else f"{row['value']:g}"
    cells = [
        _subject(row),
        cost,
        peer,
        format_seconds(row["peer_s"]) if has_peer else "",
        format_ratio(row["ratio"]) if "ratio" in row else "",
        _details(row),
    ]
    return "| " + " | ".join(f"*{cell}*" if is_weaker and cell else cell for cell in cells) + " |"


def _details(row: Measurement) -> str:
    stated = [row[key] for key in ("unit", "note") if key in row]
    rest = [f"{key.replace('_', ' ')}: {_format(row[key])}" for key in sorted(row.keys() - COLUMN_KEYS)]
    return "; ".join([*stated, *rest])


def _format(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format(value[key])}" for key in sorted(value, key=str))
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def format_seconds(spent: float) -> str:
    """Return a time with two significant digits and a unit; whole seconds from 10 s on."""
    if spent < 1:
        return f"{float(f'{spent * 1000:.2g}'):g} ms"
    return f"{spent:.1f} s" if spent < 10 else f"{spent:,.0f} s"


def format_ratio(ratio: float) -> str:
    """Return a ratio with one decimal below 10, else as a whole number."""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
