"""Published tasks of lm-evaluation-harness, over small made-up documents in the published shape."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

N_DOCUMENTS, N_OTHERS = 6, 12
MAX_TOKENS = 12


@dataclass(frozen=True, kw_only=True)
class TaskFile:
    """A task file of the harness, and what its documents look like.

    Attributes:
        path: the published file below the harness's folder of tasks.
        make: makes a document.
        splits: names of the splits that it uses; the first is evaluated.
        suffix: type of the documents' files.
        settings: settings that differ from the published ones.
    """

    path: str
    make: Callable[[random.Random], dict[str, Any]]
    splits: tuple[str, ...]
    suffix: str = "jsonl"
    settings: Mapping[str, Any] = field(default_factory=dict)


def _words(rng: random.Random, low: int, high: int) -> str:
    def word() -> str:
        return "".join(rng.choice("bcdfglmnprst") + rng.choice("aeiou") for _ in range(2))

    return " ".join(word() for _ in range(rng.randint(low, high)))


def _labelled(rng: random.Random, n: int = 4) -> dict[str, list[str]]:
    return {"text": [_words(rng, 1, 3) for _ in range(n)], "label": list("ABCDE"[:n])}


def _arc(rng: random.Random) -> dict[str, Any]:
    choices = _labelled(rng)
    return {
        "id": _words(rng, 1, 1),
        "question": f"Which {_words(rng, 3, 8)}?",
        "choices": choices,
        "answerKey": rng.choice("ABCD"),
    }


def _hellaswag(rng: random.Random) -> dict[str, Any]:
    return {
        "ind": rng.randrange(10_000),
        "activity_label": _words(rng, 1, 2).title(),
        "ctx_a": f"A {_words(rng, 4, 8)} [title]  x.",
        "ctx_b": _words(rng, 1, 3),
        "ctx": "",
        "endings": [f"[step] {_words(rng, 2, 5)}." for _ in range(4)],
        "label": str(rng.randrange(4)),
    }


def _boolq(rng: random.Random) -> dict[str, Any]:
    return {
        "question": _words(rng, 3, 7),
        "passage": f"{_words(rng, 6, 14)}.",
        "idx": rng.randrange(999),
        "label": rng.randrange(2),
    }


def _winogrande(rng: random.Random) -> dict[str, Any]:
    first, second = _words(rng, 1, 1), _words(rng, 1, 1)
    sentence = f"The {first} met the {second} because _ {_words(rng, 2, 5)}."
    return {"sentence": sentence, "option1": first, "option2": second, "answer": rng.choice("12")}


def _truthfulqa(rng: random.Random) -> dict[str, Any]:
    n, n_true = rng.randint(3, 5), rng.randint(1, 2)
    texts = [_words(rng, 2, 4) for _ in range(n)]
    return {
        "question": f"What {_words(rng, 2, 6)}?",
        "mc1_targets": {"choices": texts, "labels": [1] + [0] * (n - 1)},
        "mc2_targets": {"choices": texts, "labels": [1] * n_true + [0] * (n - n_true)},
    }


def _piqa(rng: random.Random) -> dict[str, Any]:
    return {"goal": _words(rng, 3, 7), "sol1": _words(rng, 3, 7), "sol2": _words(rng, 3, 7), "label": rng.randrange(2)}


def _gsm8k(rng: random.Random) -> dict[str, Any]:
    number = rng.choice(["7", "1,200", "-3", "18"])
    return {
        "question": f"{_words(rng, 5, 9)} {rng.randrange(99)}?",
        "answer": f"{_words(rng, 3, 6)}\n<<1+1=2>>2\n#### {number}",
    }


def _bbh(rng: random.Random) -> dict[str, Any]:
    return {
        "input": f"not ( {rng.choice(['True', 'False'])} and {_words(rng, 1, 2)} ) is",
        "target": rng.choice(["True", "False"]),
    }


def _lambada(rng: random.Random) -> dict[str, Any]:
    return {"text": _words(rng, 8, 16)}


def _mmlu(rng: random.Random) -> dict[str, Any]:
    return {
        "question": f" {_words(rng, 4, 8)}? ",
        "subject": "anatomy",
        "choices": [_words(rng, 1, 3) for _ in range(4)],
        "answer": rng.randrange(4),
    }


def _mmlu_pro(rng: random.Random) -> dict[str, Any]:
    return {
        "question": f"{_words(rng, 4, 8)}?",
        "options": [_words(rng, 1, 3) for _ in range(rng.randint(3, 10))],
        "answer": rng.choice("ABC"),
        "cot_content": f"A: Let's think step by step. {_words(rng, 4, 8)}. The answer is (B).",
        "category": rng.choice(["math", "math", "law"]),
        "question_id": rng.randrange(9_999),
    }


def _openbookqa(rng: random.Random) -> dict[str, Any]:
    return {"question_stem": f"The {_words(rng, 3, 6)}", "choices": _labelled(rng), "answerKey": rng.choice("ABCD")}


def _commonsense_qa(rng: random.Random) -> dict[str, Any]:
    return {"question": f" {_words(rng, 4, 8)}?", "choices": _labelled(rng, 5), "answerKey": rng.choice("ABCDE")}


def _nq_open(rng: random.Random) -> dict[str, Any]:
    return {"question": _words(rng, 4, 8), "answer": [_words(rng, 1, 2) for _ in range(rng.randint(1, 3))]}


def _stop_at(*words: str) -> dict[str, Any]:
    return {
        "generation_kwargs": {"until": list(words), "max_gen_toks": MAX_TOKENS, "do_sample": False, "temperature": 0.0}
    }


TASKS: dict[str, TaskFile] = {
    "arc_easy": TaskFile(
        path="arc/arc_easy.yaml",
        make=_arc,
        splits=("test", "validation", "train"),
        settings={"num_fewshot": 3},
    ),
    "hellaswag": TaskFile(
        path="hellaswag/hellaswag.yaml", make=_hellaswag, splits=("validation", "train"), settings={"num_fewshot": 2}
    ),
    "boolq": TaskFile(
        path="super_glue/boolq/default.yaml", make=_boolq, splits=("validation", "train"), suffix="parquet"
    ),
    "winogrande": TaskFile(
        path="winogrande/default.yaml", make=_winogrande, splits=("validation", "train"), settings={"num_fewshot": 2}
    ),
    "truthfulqa_mc1": TaskFile(path="truthfulqa/truthfulqa_mc1.yaml", make=_truthfulqa, splits=("validation",)),
    "truthfulqa_mc2": TaskFile(path="truthfulqa/truthfulqa_mc2.yaml", make=_truthfulqa, splits=("validation",)),
    "piqa": TaskFile(
        path="piqa/piqa.yaml", make=_piqa, splits=("validation", "train"), suffix="csv", settings={"num_fewshot": 1}
    ),
    "gsm8k": TaskFile(
        path="gsm8k/gsm8k.yaml", make=_gsm8k, splits=("test", "train"), settings=_stop_at("Question:", "</s>")
    ),
    "bbh_fewshot_boolean_expressions": TaskFile(
        path="bbh/fewshot/boolean_expressions.yaml",
        make=_bbh,
        splits=("test",),
        suffix="json",
        settings=_stop_at("</s>", "Q", "\n\n"),
    ),
    "lambada_openai": TaskFile(path="lambada/lambada_openai.yaml", make=_lambada, splits=("test",)),
    "mmlu_anatomy": TaskFile(
        path="mmlu/default/mmlu_anatomy.yaml",
        make=_mmlu,
        splits=("test", "dev"),
        suffix="parquet",
        settings={"num_fewshot": 5},
    ),
    "mmlu_pro_math": TaskFile(
        path="mmlu_pro/mmlu_pro_math.yaml",
        make=_mmlu_pro,
        splits=("test", "validation"),
        settings=_stop_at("Question:"),
    ),
    "openbookqa": TaskFile(path="openbookqa/openbookqa.yaml", make=_openbookqa, splits=("test", "validation", "train")),
    "commonsense_qa": TaskFile(
        path="commonsense_qa/default.yaml",
        make=_commonsense_qa,
        splits=("validation", "train"),
        settings={"num_fewshot": 2},
    ),
    "nq_open": TaskFile(
        path="nq_open/nq_open.yaml",
        make=_nq_open,
        splits=("validation", "train"),
        settings={"num_fewshot": 2, **_stop_at("\n", ".", ",")},
    ),
}
VARIATIONS: dict[str, TaskFile] = {
    "same_split_drawn": TaskFile(
        path="arc/arc_easy.yaml",
        make=_arc,
        splits=("test",),
        settings={"num_fewshot": 3, "fewshot_split": "test"},
    ),
    "same_split_first": TaskFile(
        path="arc/arc_easy.yaml",
        make=_arc,
        splits=("test",),
        settings={"num_fewshot": 2, "fewshot_split": "test", "fewshot_config": {"sampler": "first_n"}},
    ),
    "no_split_named": TaskFile(
        path="piqa/piqa.yaml",
        make=_piqa,
        splits=("validation", "train"),
        settings={"num_fewshot": 2, "training_split": None},
    ),
    "other_examples": TaskFile(
        path="super_glue/boolq/default.yaml",
        make=_boolq,
        splits=("validation", "train"),
        settings={
            "num_fewshot": 2,
            "description": "About {{idx}}:\n",
            "fewshot_delimiter": "\n###\n",
            "fewshot_config": {"doc_to_text": "{{question}} ->", "target_delimiter": "", "fewshot_indices": [4, 1, 7]},
        },
    ),
    "begun_responses": TaskFile(
        path="gsm8k/gsm8k.yaml",
        make=_gsm8k,
        splits=("test", "train"),
        settings={"gen_prefix": "Let us think: {{question[:3]}}", "num_fewshot": 1, **_stop_at("Question:")},
    ),
    "begun_options": TaskFile(
        path="arc/arc_easy.yaml",
        make=_arc,
        splits=("test", "train"),
        settings={"gen_prefix": "It is", "num_fewshot": 1, "training_split": "train"},
    ),
    "several_correct": TaskFile(
        path="arc/arc_easy.yaml",
        make=_arc,
        splits=("test",),
        settings={
            "doc_to_target": "{{[0, choices.label.index(answerKey)]}}",
            "training_split": None,
            "validation_split": None,
        },
    ),
    "lettered_options": TaskFile(
        path="gsm8k/gsm8k.yaml",
        make=_mmlu,
        splits=("test", "train"),
        settings={
            "num_fewshot": 0,
            "doc_to_target": "{{'(' + 'ABCD'[answer] + ')'}}",
            "filter_list": [
                {
                    "name": "letter",
                    "filter": [
                        {
                            "function": "multi_choice_regex",
                            "regex_pattern": "answer is (\\([A-D]\\))",
                            "ignore_case": True,
                        },
                        {"function": "take_first"},
                    ],
                },
                {"name": "none", "filter": [{"function": "lowercase"}, {"function": "take_first"}]},
            ],
            **_stop_at("Question:"),
        },
    ),
}
"""Tasks with settings that few published ones have."""
TEXTS = (
    "", "True", " true.", "so the answer is (B). Thus", "#### 7", "it is\n#### 1,200.", "$18 or 18.0", "-3",
    "The answer is 7", "the ANSWER is (A)", "no answer", "#### 7\n#### 9",
)  # fmt: skip
"""Responses that are scored by both, beside those that the model generates."""

ORDINARY = ("boolq", "winogrande", "gsm8k", "lambada_openai")
"""Tasks of the ordinary run: constant options, partial scoring, generation and a log-likelihood."""


def write_task(folder: Path, name: str, tasks: Path, seed: int = 0) -> Path:
    """Write documents and a task file that includes the published one; returns the task file.

    Args:
        folder: where to.
        name: one of `TASKS` or `VARIATIONS`.
        tasks: the harness's folder of tasks.
        seed: of the documents.
    """
    task = (TASKS | VARIATIONS)[name]
    rng = random.Random(f"{name} {seed}")
    files = {}
    for at, split in enumerate(task.splits):
        path = folder / f"{name}_{split}.{task.suffix}"
        write_documents(path, [task.make(rng) for _ in range(N_OTHERS if at else N_DOCUMENTS)])
        files[split] = str(path)
    kind = {"jsonl": "json"}.get(task.suffix, task.suffix)
    settings = {
        "include": str(tasks / task.path),
        "dataset_path": kind,
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
        **task.settings,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"task": name, **settings}))
    return path


def write_documents(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write documents in the type of the file's name."""
    import pandas as pd

    if path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
