"""A store in which every text that a file can bring is hostile, and every kind of page has some."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from web_server import HOSTILE

from tracker.database import transaction
from tracker.queries.sql import tables

ACT = "window.acted=true"
NAMES = (
    *HOSTILE,
    f"</title></textarea></style><svg onload={ACT}>", f"<img src=x onerror={ACT}>", f"'\"`><script>{ACT}</script>",
    f"javascript:{ACT}", "data:text/html,<script>1</script>", "//evil.example/x", "https://evil.example/", "<!--",
    "]]>", "&lt;b&gt; &amp;quot; &#60;", "{% raw %}{{ 7*7 }}", "{{ config }}", "null", "None", "NaN", "undefined", "0",
    "-1", " ", "\u200b\u200d\ufeff", "\u2066left\u2069 \u202eright", "a\nb\r\nc\td", "..", ".", "/", "../../etc/passwd",
    "%2e%2e%2f%00", "%", "?", "#x", "a?b=c&d=e+f#g", "\\", "\\u0000 \\x00", "=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1",
    "x" * 10_000, "long words " * 900, "🏴‍☠️👩‍👩‍👧‍👦", "e" + "\u0301" * 300, "שלום עולם", "ﷺ" * 40, "CON", "constructor",
    "__proto__", "toString", "\x07bell\x1b[31m", "İstanbul ß", "\u2028\u2029", "rows", "model", "title",
)  # fmt: skip
"""Texts that try to act, to leave their place, or to look like nothing."""
LARGE = 1.7e308


def fill_hostile_everywhere(engine: sa.Engine) -> None:
    """Store benchmarks, runs, prompts, responses and findings whose texts are all of `NAMES`."""
    with transaction(engine) as session:

        def key(table: sa.TableClause, **values: object) -> int:
            return int(session.execute(sa.insert(table).values(**values).returning(table.c.id)).scalar_one())

        rng = np.random.default_rng(4)
        benchmarks = [key(tables.benchmark, name=name, revision=NAMES[-i]) for i, name in enumerate(NAMES[:8])]
        empty = key(tables.benchmark, name="no scores", revision="")
        metric = key(tables.metric, name=NAMES[8], higher_is_better=True, lower=0.0, upper=1.0)
        large = key(tables.metric, name=NAMES[9], higher_is_better=False)
        models = [
            key(tables.model, name=name, organization=name, family=NAMES[i // 3], parameters=10**i if i < 18 else None)
            for i, name in enumerate(NAMES)
        ]
        for name, model in zip(NAMES, models, strict=True):
            session.execute(sa.insert(tables.model_alias).values(name=f"alias {name}", model_id=model))
        tasks = [key(tables.task, benchmark_id=benchmarks[0], name=name) for name in ("", *NAMES)]
        prompts = [_add_prompt(key, task, NAMES[i % len(NAMES)]) for i, task in enumerate(tasks)]
        for i, model in enumerate(models):
            scores = (rng.random(len(prompts)) < 0.3 + 0.4 * i / len(models)).astype(float)
            _add_run(session, key, benchmarks[0], model, NAMES[i], metric, prompts, scores.tolist())
        for i, owner in enumerate(benchmarks[1:], start=1):
            task = key(tables.task, benchmark_id=owner, name=NAMES[i])
            questions = [_add_prompt(key, task, name) for name in NAMES[:5]]
            for j, model in enumerate(models[: 1 + i % 3]):
                values = [LARGE, -LARGE, 5e-324, 0.0, LARGE] if i == 1 else [float(j)] * 5
                _add_run(session, key, owner, model, NAMES[i], large, questions, values)
        for i, name in enumerate(NAMES[:12]):
            _add_finding(session, key, [*benchmarks, empty, None][i % 10], name, failed=i % 5 == 4)


def _add_prompt(key: Any, task: int, text: str) -> int:
    return int(
        key(
            tables.prompt, task_id=task, occurrence=0, content_hash=f"{task} {hash(text)}", text=text,
            choices=list(NAMES[:9]) if len(text) < 9 else [text, ""], answer=text, split=text,
            details={text: text, "nested": {text: [text]}},
        )
    )  # fmt: skip


def _add_run(
    session: Any, key: Any, owner: int, model: int, text: str, metric: int, prompts: list[int], scores: list[float]
) -> None:
    run = key(
        tables.run, benchmark_id=owner, model_id=model, condition="full", variant="", label="",
        settings={text: text, "nested": {text: [text, None]}}, limited=False, status="complete",
        reason=text, unverified=text, n_scores=len(prompts), checksum="0" * 32, ingested=sa.func.current_timestamp(),
    )  # fmt: skip
    hidden = key(
        tables.run, benchmark_id=owner, model_id=model, condition="full", variant=text, label=text, settings=None,
        limited=False, status="hidden", reason=text, n_scores=0, checksum="0" * 32,
        ingested=sa.func.current_timestamp(),
    )  # fmt: skip
    source = key(
        tables.source, identity=f"{run}", digest="", path=text, format=text, harness=text,
        ingested=sa.func.current_timestamp(),
    )  # fmt: skip
    session.execute(sa.insert(tables.run_source), [{"run_id": number, "source_id": source} for number in (run, hidden)])
    common = [{"run_id": run, "prompt_id": prompt, "trial": 0} for prompt in prompts]
    session.execute(
        sa.insert(tables.score),
        [{**row, "metric_id": metric, "value": value} for row, value in zip(common, scores, strict=True)],
    )
    for extraction in ("", "reasoning", text):
        session.execute(
            sa.insert(tables.answer),
            [{**row, "extraction": extraction, "text": text, "probability": None, "status": "ok"} for row in common],
        )


def _add_finding(session: Any, key: Any, owner: int | None, text: str, *, failed: bool) -> None:
    finding = key(
        tables.finding, benchmark_id=owner, analysis=text, parameters={text: text}, selection={text: text},
        input_digest=text, code_version=text, status="failed" if failed else "complete", error=text if failed else None,
        stale=text, headline=None if failed else text, leader=text, evidence=[text, ""], caveats=[text],
        warnings=[text], timings={text: 1.0}, recorded=sa.func.current_timestamp(),
    )  # fmt: skip
    numbers = [("nothing", None, text), (text, float("inf"), None), ("small", 5e-324, None)]
    session.execute(
        sa.insert(tables.finding_metric),
        [
            {"finding_id": finding, "name": name, "value": value, "reason": reason, "is_main": True, "position": place}
            for place, (name, value, reason) in enumerate(numbers)
        ],
    )
    table = {
        text: list(NAMES), "prompt_id": [1] * len(NAMES), "value": [float("nan"), float("inf")] * (len(NAMES) // 2),
        "flag": [True] * len(NAMES), "list": [[text]] * len(NAMES), "nothing": [None] * len(NAMES),
    }  # fmt: skip
    file = io.BytesIO()
    pq.write_table(pa.table(table), file)
    name = text.replace("/", "")[:200]
    contents = {
        "table.parquet": file.getvalue(), f"{name} x.parquet": file.getvalue(), "figure.png": PIXEL,
        f"{name} ?#%.png": PIXEL,
    }  # fmt: skip
    session.execute(
        sa.insert(tables.finding_artifact),
        [
            {"finding_id": finding, "name": name, "media_type": text, "content": content}
            for name, content in contents.items()
        ],
    )


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)
"""A transparent picture of one pixel."""
