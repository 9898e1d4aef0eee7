"""Stores filled row by row, from rows as an archive has them: slow, and plain to see."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import hypothesis.strategies as st
import sqlalchemy as sa
from archive_files import RUN, WHEN, Rows, counted, prompt

from tracker import schema
from tracker.database import transaction
from tracker.ingest.archives.layout import ROW_ORDER
from tracker.ingest.write.bulk_rows import load_scores
from tracker.ingest.write.checksums import compute_checksum

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
        for table in ROW_ORDER:
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
    names = [*reversed(ROW_ORDER)]
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
