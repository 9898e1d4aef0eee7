"""SQLite stores: one with everything in it, one of scores, one of nothing but names."""

from __future__ import annotations

from example_stores import AWKWARD, RUN, packed, prompt

from tracker.ingest.measurement import ReadOptions

PLAIN = {
    "benchmark": [{"name": "b", "revision": ""}],
    "task": [{"benchmark": 0, "name": "t"}],
    "metric": [{"name": "accuracy", "higher_is_better": True, "lower": 0.0, "upper": 1.0}],
    "model": [
        {"name": name, "organization": None, "family": None, "parameters": None, "released": None, "open_weights": None}
        for name in ("x", "y")
    ],
    "prompt": [prompt(0, f"{n}?") for n in range(3)],
    "prompt_alias": [{"prompt": n, "namespace": "", "key": str(n)} for n in range(3)],
    "run": [{**RUN, "benchmark": 0, "model": model} for model in range(2)],
    "score": [
        {"run": run, "metric": 0, "prompt": n, "trial": 0, "value": float((run + n) % 2)}
        for run in range(2)
        for n in range(3)
    ],
}
VISIBLE = AWKWARD | {"run": [{**run, "status": run["status"].replace("hidden", "complete")} for run in AWKWARD["run"]]}
FILES = {
    "awkward.db": packed(VISIBLE),
    "plain.db": packed(PLAIN),
    "names/only.sqlite": packed({"benchmark": [{"name": "b", "revision": "2"}]}),
}
OPTIONS = [ReadOptions(), ReadOptions(benchmark="b")]
