"""Small files in the shapes in which the known data sets are published; the texts are our own."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tracker.database import transaction
from tracker.ingest.datasets import ingest_prompts as module
from tracker.queries.sql import tables

Rows = Sequence[Mapping[str, Any]]


def ingest_prompts(engine: sa.Engine, benchmark: str, source: str | Path, **options: Any) -> module.PromptIngestResult:
    """`ingest_prompts` with the fields of `PromptOptions` as keyword arguments."""
    handling = {name: options.pop(name) for name in ("on_conflict", "dry_run", "progress") if name in options}
    return module.ingest_prompts(engine, benchmark, source, module.PromptOptions(**options), **handling)


def json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def csv_file(path: Path, rows: Iterable[Sequence[Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def anli_lines(name: str, labels: Sequence[str] = ("e", "n", "c")) -> Rows:
    return [
        {
            "uid": f"{name}-{n}", "context": f"A lamp stood there {name} {n}. ", "hypothesis": f"Light {n}",
            "label": label, "model_label": "n", "emturk": True, "genre": "wiki", "reason": f"because {n}", "tag": "x",
        }
        for n, label in enumerate(labels)
    ]  # fmt: skip


def anli_hub(name: str) -> Rows:
    return [
        {
            "uid": line["uid"], "premise": line["context"], "hypothesis": line["hypothesis"],
            "label": "enc".index(line["label"]), "reason": line["reason"],
        }
        for line in anli_lines(name)
    ]  # fmt: skip


def hellaswag(split: str, n: int = 4, *, as_text: bool = False, labelled: bool = True) -> Rows:
    rows = []
    for number in range(n):
        row: dict[str, Any] = {
            "ind": number, "activity_label": "Baking bread", "ctx_a": f"Dough {split} {number} rises.", "ctx_b": "they",
            "ctx": f"Dough {split} {number} rises. they", "split": split, "split_type": "indomain",
            "endings": [f"bake it {number}.", "eat it.", "sing to it.", "fly."], "source_id": f"kitchen~{number}",
        }  # fmt: skip
        label = number % 4
        rows.append(row | {"label": (str(label) if as_text else label) if labelled else ""})
    return rows


def stem_and_options(number: int, answer: str | None, labels: str = "ABCDE") -> dict[str, Any]:
    """A question as CommonsenseQA and ARC write their JSON Lines."""
    options = [{"label": label, "text": f"place {label} {number}"} for label in labels]
    row: dict[str, Any] = {
        "id": f"q{number}",
        "question": {"stem": f"Where is thing {number}?", "choices": options, "question_concept": "thing"},
    }
    return row if answer is None else {"answerKey": answer} | row


def flat_question(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same as the hub has it."""
    requested = row["question"]
    return {
        "id": row["id"],
        "question": requested["stem"],
        "question_concept": requested["question_concept"],
        "choices": {key: [item[key] for item in requested["choices"]] for key in ("label", "text")},
        "answerKey": row.get("answerKey", ""),
    }


def mmlu_row(number: int, answer: str = "B") -> list[str]:
    return [f'What is "{number}",\nsaid twice?', f"{number}", f"{number + 1}", f"{number + 2}", "none", answer]


def stored_prompts(engine: sa.Engine, benchmark: str) -> list[dict[str, Any]]:
    """Every prompt of a benchmark, with its task, its name and the namespace of that."""
    prompt, task, alias, of = tables.prompt.c, tables.task.c, tables.prompt_alias.c, tables.benchmark.c
    requested = (
        sa.select(prompt.id.label("prompt_id"), task.name.label("task"), prompt.split, prompt.text, prompt.choices,
                  prompt.answer, prompt.details, prompt.content_hash, alias.namespace, alias.key)
        .join_from(tables.prompt, tables.task, task.id == prompt.task_id)
        .join(tables.benchmark, of.id == task.benchmark_id)
        .outerjoin(tables.prompt_alias, alias.prompt_id == prompt.id)
        .where(of.name == benchmark)
        .order_by(prompt.id)
    )  # fmt: skip
    with transaction(engine, write=False) as session:
        return [dict(row) for row in session.execute(requested).mappings()]
