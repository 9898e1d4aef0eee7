"""Archives made by hand, row by row, with nothing of the program but the layout."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracker.ingest.archives.layout import MANIFEST, MARK, ROW_ORDER, archive_schema
from tracker.ingest.resolve.prompt_texts import hash_content

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by table, as an archive has them: what they refer to by its place, JSON as text."""

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
    whole = {table: [dict(row) for row in rows.get(table, ())] for table in ROW_ORDER}
    for place, run in enumerate(whole["run"]):
        run.setdefault("n_scores", sum(row["run"] == place for row in whole["score"]))
    return whole


def packed(
    rows: Rows, *, change: Mapping[str, pa.Table] | None = None, manifest: Mapping[str, Any] | None = None
) -> bytes:
    """An archive of these rows, sealed as the program seals it.

    Args:
        rows: its content.
        change: tables that stand in it instead.
        manifest: fields of the manifest that are others.
    """
    whole, table_facts = counted(rows), {}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(MARK, "1\n")
        for table in ROW_ORDER:
            changed = (change or {}).get(table)
            changed = pa.Table.from_pylist(whole[table], archive_schema(table)) if changed is None else changed
            sink = io.BytesIO()
            pq.write_table(changed, sink)
            archive.writestr(f"{table}.parquet", sink.getvalue())
            table_facts[table] = {"rows": changed.num_rows, "sha256": hashlib.sha256(sink.getvalue()).hexdigest()}
        manifest_fields = {"format": MARK, "version": 1, "schema": "0006", "tables": table_facts, **(manifest or {})}
        archive.writestr(MANIFEST, json.dumps(manifest_fields))
    return file.getvalue()


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
