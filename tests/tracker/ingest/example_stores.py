"""Stores filled row by row, from rows by table: slow, and plain to see."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import sqlalchemy as sa

from tracker import schema
from tracker.connections.schema_versions import upgrade
from tracker.copying.partial_copy import MEASUREMENTS
from tracker.database import create_unchecked_engine, transaction
from tracker.ingest.resolve.prompt_texts import hash_content
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.checksums import compute_checksum

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by table; they name the rows that they refer to by their places, from 0, and hold JSON as text."""

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
RUN = {
    "condition": "full", "variant": "", "label": "", "few_shot": None, "settings": None, "limited": False,
    "status": "complete", "superseded_by": None, "reason": None, "started": None, "ingested": WHEN,
}  # fmt: skip


def prompt(task: int, text: str | None, choices: list[str] | None = None, occurrence: int = 0, **more: Any) -> Any:
    """A row of a prompt."""
    hashed = None if text is None else hash_content(text, choices)
    table_facts = {"answer": None, "split": None, "details": None} | more
    choices_json = None if choices is None else json.dumps(choices)
    return {
        "task": task,
        "content_hash": hashed,
        "occurrence": occurrence,
        "text": text,
        "choices": choices_json,
        **table_facts,
    }


def counted(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    """The same with every table, and with the number of scores of each run."""
    whole = {table: [dict(row) for row in rows.get(table, ())] for table in MEASUREMENTS}
    for place, run in enumerate(whole["run"]):
        run.setdefault("n_scores", sum(row["run"] == place for row in whole["score"]))
    return whole


def packed(rows: Rows, change: Callable[[sqlite3.Connection], Any] | None = None) -> bytes:
    """A SQLite store of these rows, as a file.

    Args:
        rows: its content.
        change: changes the file afterwards, past all checks of the program.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        path.write_bytes(_empty_store())
        engine = create_unchecked_engine(f"sqlite:///{path}")
        fill(engine, rows)
        engine.dispose()
        with closing(sqlite3.connect(path)) as raw:
            if change is not None:
                raw.execute("PRAGMA ignore_check_constraints=ON")
                change(raw)
                raw.commit()
            raw.execute("PRAGMA journal_mode=DELETE")
        return path.read_bytes()


@lru_cache
def _empty_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        engine = create_unchecked_engine(f"sqlite:///{path}")
        upgrade(engine)
        engine.dispose()
        return path.read_bytes()


AWKWARD: Rows = {
    "benchmark": [
        {"name": "grüße ☂", "revision": ""},
        {"name": "grüße ☂", "revision": "v2"},
        {"name": "empty", "revision": ""},
    ],
    "task": [
        {"benchmark": 1, "name": ""},
        {"benchmark": 0, "name": "alg,ebra \"x\"\n"},
        {"benchmark": 0, "name": ""},
        {"benchmark": 2, "name": "no prompts"},
    ],
    "metric": [
        {"name": "accuracy", "higher_is_better": True, "lower": 0.0, "upper": 1.0},
        {"name": "loss,none", "higher_is_better": False, "lower": None, "upper": None},
        {"name": "never used", "higher_is_better": True, "lower": -1.5, "upper": None},
    ],
    "model": [
        {
            "name": "org/m", "organization": None, "family": "", "parameters": 2**40, "released": date(2024, 5, 31),
            "open_weights": False,
        },
        {
            "name": "模型", "organization": "組", "family": None, "parameters": None, "released": None,
            "open_weights": None,
        },
        {
            "name": "no runs", "organization": None, "family": None, "parameters": None, "released": None,
            "open_weights": True,
        },
    ],
    "model_alias": [{"model": 0, "name": "m"}, {"model": 0, "name": "M, the other"}, {"model": 2, "name": ""}],
    "source": [
        {
            "identity": "a" * 64, "digest": "b" * 64, "path": "/results/ü.csv", "format": "long-table",
            "harness": None, "ingested": WHEN,
        },
        {
            "identity": "c" * 64, "digest": "b" * 64, "path": "p.csv", "format": "prompt-table",
            "harness": "lm_eval 0.4.13", "ingested": WHEN.replace(microsecond=0),
        },
    ],
    "prompt": [
        prompt(1, "Why?", ["a", "b"], answer="A", split="test", details='{"n": 1, "deep": {"list": [2.5, null]}}'),
        prompt(1, "Why?", ["a", "b"], occurrence=1, answer="B"),
        prompt(1, "Why?", ["a", "b"], occurrence=3),
        prompt(1, None, answer="", split=""),
        prompt(1, None),
        prompt(2, "", [], details="{}"),
        prompt(0, "Why?", ["a", "b"]),
        prompt(2, "  surrounded \n", ["=1+1", "", "é", "e\u0301"]),
        prompt(1, None),
    ],
    "prompt_alias": [
        {"prompt": 0, "namespace": "", "key": "q1"},
        {"prompt": 0, "namespace": "", "key": "q1 again"},
        {"prompt": 0, "namespace": "lm_eval", "key": "hash"},
        {"prompt": 1, "namespace": "lm_eval", "key": "hash#1"},
        {"prompt": 3, "namespace": "", "key": ""},
        {"prompt": 6, "namespace": "", "key": "q1"},
        {"prompt": 7, "namespace": "helm", "key": "ﬀ"},
    ],
    "run": [
        {**RUN, "benchmark": 0, "model": 0, "few_shot": 5, "settings": '{"temperature": 0.5, "ü": [1, {"a": null}]}'},
        {**RUN, "benchmark": 0, "model": 0, "label": "#2", "limited": True, "started": WHEN, "superseded_by": 3},
        {**RUN, "benchmark": 0, "model": 0, "label": "2024-01-01T00-00-00", "status": "partial", "reason": "cut off"},
        {**RUN, "benchmark": 0, "model": 0, "label": "#7", "status": "hidden", "reason": ""},
        {**RUN, "benchmark": 1, "model": 1, "condition": "answer_only", "variant": "shouted", "settings": "{}"},
        {**RUN, "benchmark": 2, "model": 1},
    ],
    "run_source": [{"run": 0, "source": 0}, {"run": 1, "source": 0}, {"run": 1, "source": 1}],
    "score": [
        {"run": 0, "metric": 0, "prompt": 0, "trial": 0, "value": 1.0},
        {"run": 0, "metric": 0, "prompt": 0, "trial": 1, "value": 0.1 + 0.2},
        {"run": 0, "metric": 0, "prompt": 3, "trial": 7, "value": 0.0},
        {"run": 0, "metric": 1, "prompt": 0, "trial": 0, "value": -1e300},
        {"run": 1, "metric": 0, "prompt": 4, "trial": 0, "value": 5e-324},
        {"run": 4, "metric": 0, "prompt": 6, "trial": 0, "value": 1.0},
    ],
    "answer": [
        {"run": 0, "prompt": 0, "extraction": "", "trial": 0, "text": "A", "probability": 0.25, "status": "ok"},
        {"run": 0, "prompt": 0, "extraction": "x", "trial": 0, "text": None, "probability": None, "status": "empty"},
        {"run": 0, "prompt": 1, "extraction": "", "trial": 2, "text": "", "probability": None, "status": "error"},
        {"run": 2, "prompt": 0, "extraction": "", "trial": 0, "text": "=1+1", "probability": None, "status": "ok"},
    ],
    "task_score": [
        {"run": 0, "metric": 0, "task": 1, "value": 0.5, "stderr": 0.01, "n_prompts": 10},
        {"run": 5, "metric": 1, "task": 3, "value": -2.5, "stderr": None, "n_prompts": None},
    ],
    "encoder": [
        {"name": "mini", "revision": "1", "template": "question", "dimensions": 2},
        {"name": "mini", "revision": "", "template": "question+choices", "dimensions": 1},
        {"name": "none yet", "revision": "", "template": "question", "dimensions": 3},
    ],
    "embedding": [
        {"encoder": 0, "prompt": 0, "vector": b"\x00\x00\x80?\x00\x00\xc0\x7f"},
        {"encoder": 0, "prompt": 6, "vector": bytes(8)},
        {"encoder": 1, "prompt": 0, "vector": b"\x00\x00\x80\xbf"},
    ],
}  # fmt: skip
"""A store with everything that is easily lost."""


TABLES = {
    "benchmark": schema.Benchmark, "task": schema.Task, "metric": schema.Metric, "model": schema.Model,
    "model_alias": schema.ModelAlias, "source": schema.Source, "prompt": schema.Prompt,
    "prompt_alias": schema.PromptAlias, "run": schema.Run, "run_source": schema.RunSource, "score": schema.Score,
    "answer": schema.Answer, "task_score": schema.TaskScore, "encoder": schema.Encoder, "embedding": schema.Embedding,
}  # fmt: skip
REFERENCES = ("benchmark", "task", "metric", "model", "source", "prompt", "run", "encoder")


def fill(engine: sa.Engine, rows: Rows) -> None:
    """Put the rows into an empty store."""
    keys: dict[str, list[int]] = defaultdict(list)
    later: list[tuple[Any, int]] = []
    whole = counted(rows)
    with transaction(engine) as session:
        for table in MEASUREMENTS:
            for row in whole[table]:
                values = {name: value for name, value in row.items() if name not in REFERENCES}
                values |= {f"{name}_id": keys[name][row[name]] for name in REFERENCES if name in row}
                for name in ("choices", "details", "settings"):
                    if name in values:
                        values[name] = None if values[name] is None else json.loads(values[name])
                if table == "prompt_alias":
                    values["task_id"] = keys["task"][whole["prompt"][row["prompt"]]["task"]]
                after = values.pop("superseded_by", None)
                built = TABLES[table](**values)
                session.add(built)
                session.flush()
                if after is not None:
                    later.append((built, after))
                if hasattr(built, "id"):
                    keys[table].append(built.id)
        for built, after in later:
            built.superseded_by = keys["run"][after]
        for key in keys["run"]:
            session.get_one(schema.Run, key).checksum = compute_checksum(list(load_scores(session, key).values()))


def empty(engine: sa.Engine) -> None:
    """Take everything out of a store again, its keys included."""
    names = [*reversed(MEASUREMENTS)]
    with transaction(engine) as session:
        if engine.dialect.name == "postgresql":
            session.execute(sa.text(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE"))
            return
        session.execute(sa.text("UPDATE run SET superseded_by = NULL"))
        for name in names:
            session.execute(sa.text(f"DELETE FROM {name}"))


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
MAPPINGS = st.none() | st.dictionaries(TEXTS, JSON, max_size=3).map(json.dumps)
MOMENTS = st.integers(0, 10**15).map(lambda n: WHEN.fromtimestamp(n / 1e6, tz=WHEN.tzinfo))


@st.composite
def stores(draw: st.DrawFn) -> Rows:
    """Small stores of any content."""

    def some(strategy: st.SearchStrategy[Any], most: int = 3, *, once: bool = True) -> list[Any]:
        if strategy.is_empty:
            return []
        return draw(st.lists(strategy, max_size=most, unique_by=repr if once else None))

    def maybe(strategy: st.SearchStrategy[Any]) -> Any:
        return draw(st.none() | strategy)

    def places(of: list[Any]) -> st.SearchStrategy[int]:
        return st.integers(0, len(of) - 1) if of else st.nothing()

    names = some(st.tuples(TEXTS, TEXTS))
    benchmark = [{"name": name, "revision": revision} for name, revision in names]
    task = [{"benchmark": owner, "name": name} for owner, name in some(st.tuples(places(benchmark), TEXTS), 4)]
    metric = [
        {"name": name, "higher_is_better": draw(st.booleans()), "lower": draw(st.sampled_from([None, -1e308])),
         "upper": draw(st.sampled_from([None, 1.7e308]))}
        for name in some(TEXTS, 2)
    ]  # fmt: skip
    aliases = some(TEXTS, 5)
    model = [
        {"name": name, "organization": maybe(TEXTS), "family": maybe(TEXTS),
         "parameters": maybe(st.integers(0, 2**63 - 1)), "released": maybe(st.dates()),
         "open_weights": maybe(st.booleans())}
        for name in aliases[:3]
    ]  # fmt: skip
    model_alias = [{"model": draw(places(model)), "name": name} for name in aliases[3:]]
    source = [
        {"identity": name, "digest": draw(TEXTS), "path": draw(TEXTS), "format": draw(TEXTS), "harness": maybe(TEXTS),
         "ingested": draw(MOMENTS)}
        for name in some(TEXTS, 2)
    ]  # fmt: skip
    query: list[Any] = []
    times: dict[Any, int] = defaultdict(int)
    contents = st.tuples(places(task), st.none() | TEXTS, st.none() | st.lists(TEXTS, max_size=2))
    for owner, text, choices in some(contents, 6, once=False):
        built = prompt(owner, text, choices if text is not None else None, answer=maybe(TEXTS), split=maybe(TEXTS))
        place = (owner, built["content_hash"])
        built |= {"occurrence": times[place] if text is not None else 0, "details": draw(MAPPINGS)}
        times[place] += 1
        query.append(built)
    prompt_alias, met = [], set()
    for place, namespace, key in some(st.tuples(places(query), st.sampled_from(["", "lm_eval"]), TEXTS), 8):
        if (query[place]["task"], namespace, key) not in met:
            met.add((query[place]["task"], namespace, key))
            prompt_alias.append({"prompt": place, "namespace": namespace, "key": key})
    identities = some(
        st.tuples(
            places(benchmark), places(model), st.sampled_from(["full", "answer_only"]), TEXTS,
            st.sampled_from(["", "#2", "#3", "2024-01-01"]),
        ),
        5,
    )  # fmt: skip
    run = [
        {**RUN, "benchmark": owner, "model": model_id, "condition": condition, "variant": variant, "label": label,
         "few_shot": maybe(st.integers(0, 2**31 - 1)), "settings": draw(MAPPINGS), "limited": draw(st.booleans()),
         "status": draw(st.sampled_from(["complete", "partial", "hidden", "superseded"])), "reason": maybe(TEXTS),
         "superseded_by": maybe(st.integers(0, len(identities) - 1)), "started": maybe(MOMENTS),
         "ingested": draw(MOMENTS)}
        for owner, model_id, condition, variant, label in identities
    ]  # fmt: skip
    owner_of = [task[item["task"]]["benchmark"] for item in query]
    pairs = [(r, p) for r, item in enumerate(run) for p, owner in enumerate(owner_of) if owner == item["benchmark"]]
    trials = st.integers(0, 2**31 - 1)
    cells = st.tuples(st.sampled_from(pairs) if pairs else st.nothing(), trials)
    score = [
        {"run": r, "metric": how, "prompt": p, "trial": trial, "value": draw(st.floats(-1e308, 1e308)) + 0.0}
        for ((r, p), trial), how in some(st.tuples(cells, places(metric)), 10)
    ]
    answer = [
        {"run": r, "prompt": p, "extraction": how, "trial": trial, "text": maybe(TEXTS),
         "probability": maybe(st.floats(0, 1)), "status": draw(st.sampled_from(["ok", "error", "empty"]))}
        for ((r, p), trial), how in some(st.tuples(cells, st.sampled_from(["", "strict"])), 6)
    ]  # fmt: skip
    whole = [(r, t) for r, item in enumerate(run) for t, of in enumerate(task) if of["benchmark"] == item["benchmark"]]
    task_score = [
        {"run": r, "metric": how, "task": t, "value": draw(st.floats(-1e308, 1e308)) + 0.0, "stderr": maybe(NUMBERS),
         "n_prompts": maybe(st.integers(0, 2**31 - 1))}
        for (r, t), how in some(st.tuples(st.sampled_from(whole) if whole else st.nothing(), places(metric)), 3)
    ]  # fmt: skip
    encoder = [
        {"name": name, "revision": revision, "template": "question", "dimensions": draw(st.integers(1, 3))}
        for name, revision in some(st.tuples(TEXTS, TEXTS), 2)
    ]
    embedding = [
        {"encoder": e, "prompt": p, "vector": draw(st.binary(min_size=4 * n, max_size=4 * n))}
        for e, p in some(st.tuples(places(encoder), places(query)), 4)
        for n in [encoder[e]["dimensions"]]
    ]
    run_source = [{"run": r, "source": s} for r, s in some(st.tuples(places(run), places(source)), 3)]
    return {
        "benchmark": benchmark, "task": task, "metric": metric, "model": model, "model_alias": model_alias,
        "source": source, "prompt": query, "prompt_alias": prompt_alias, "run": run, "run_source": run_source,
        "score": score, "answer": answer, "task_score": task_score, "encoder": encoder, "embedding": embedding,
    }  # fmt: skip
