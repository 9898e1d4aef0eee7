"""Details of lighteval in the columns of both generations, and results with and without them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tracker.ingest.measurement import ReadOptions

STAMP = "2026-01-02T03-04-05.678901"
OLD_STAMP = "2024-01-02T03-04-05.678901"


def parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.Table.from_pylist(list(rows)), sink)
    return bytes(sink.getvalue().to_pybytes())


def options(
    number: int, gold: int, likelihoods: Sequence[float], acc: float | None, underlined: bool = False, **doc: Any
) -> dict[str, Any]:
    """A row of multiple choice."""
    choices = [" red", " green", " blue"][: len(likelihoods)]
    parts = {
        "doc": {
            "query": f"Answer this.\nColour {number}?",
            "instruction": "Answer this.\n",
            "choices": choices,
            "gold_index": gold,
            "id": str(number),
            "task_name": "colours:bright|5",
            "sampling_methods": ["LOGPROBS"],
            "fewshot_samples": [],
            **doc,
        },
        "metric": {"acc": acc, "acc_norm": acc, "pairs": [1.0, 0.0]},
        "model_response": {
            "input_tokens": [1, 2],
            "text": [],
            "text_post_processed": None,
            "logprobs": list(likelihoods),
            "argmax_logits_eq_gold": [False] * len(likelihoods),
        },
    }
    return {f"__{name}__": part for name, part in parts.items()} if underlined else parts


def written(number: int, texts: Sequence[str], gold: Sequence[str], em: float) -> dict[str, Any]:
    """A row for which the model wrote, several times perhaps."""
    return {
        "doc": {
            "query": f"What is {number} + 1?",
            "instruction": "",
            "choices": list(gold),
            "gold_index": list(range(len(gold))),
            "id": str(number),
            "task_name": "sums|0",
            "sampling_methods": ["GENERATIVE"],
        },
        "metric": {"em": em},
        "model_response": {
            "text": [f"It is {text}" if text else "" for text in texts],
            "text_post_processed": list(texts),
            "logprobs": [],
        },
    }


def flat(number: int, acc: float, predictions: list[Any], **more: Any) -> dict[str, Any]:
    """A row of an earlier version."""
    return {
        "example": f"Colour {number}?",
        "instruction": "",
        "full_prompt": f"Examples.\nColour {number}?",
        "num_effective_few_shots": 5,
        "gold": [],
        "gold_index": [1],
        "choices": ["red", "green"],
        "predictions": predictions,
        "input_tokens": [[1, 2]],
        "metrics": {"acc": acc},
        "hashes": {"example": "0123", "full_prompt": "4567"},
        **more,
    }


CHOSEN = [
    options(0, 1, [-2.0, -0.5, -3.0], 1.0),
    options(1, 0, [-2.0, -0.5], 0.0),
    options(1, 0, [-0.5, -2.0], 1.0),
    options(3, 2, [-1.0, -1.0, -1.0], None),
]
SUMS = [
    written(1, ["2", "3"], ["2"], 0.5),
    written(2, ["", ""], ["3", "three"], 0.0),
    written(3, ["4", "4"], ["4"], 1.0),
]
UNDERLINED = [options(0, 1, [-2.0, -0.5, -3.0], 1.0, True, task_name="shapes|0")]
OLD = [flat(0, 1.0, [[-2.0, False], [-1.0, True]]), flat(1, 0.0, [[-1.0, False], [-2.0, True]])]
OLD_WRITTEN = [
    flat(0, 1.0, ["4"], gold=["4"], gold_index=[], choices=[]),
    flat(1, 0.0, [""], gold=["5"], gold_index=[], choices=[]),
]
RESULTS = {
    "config_general": {
        "lighteval_sha": "0123456789abcdef",
        "max_samples": 4,
        "model_name": "org/model",
        "model_dtype": "bfloat16",
        "generation_parameters": {"temperature": 0.0},
    },
    "results": {
        "colours:bright|5": {"acc": 2 / 3, "acc_stderr": 1 / 3, "acc_norm": 2 / 3, "acc_norm_stderr": 1 / 3},
        "colours:dark|5": {"acc": 0.25, "acc_stderr": 0.1, "acc_norm": 0.5},
        "colours:_average|5": {"acc": 0.45},
        "sums|0": {"em": 0.5, "em_stderr": 0.28867513459481287},
        "all": {"acc": 0.4, "em": 0.5},
    },
    "versions": {"colours:bright|5": 0},
    "config_tasks": {"colours:dark": {"effective_num_docs": 8, "original_num_docs": 80}},
}
DETAILS = f"out/details/org/model/{STAMP}"
OLD_DETAILS = f"details_org__old/{OLD_STAMP}"
FILES = {
    f"{DETAILS}/details_colours:bright|5_{STAMP}.parquet": parquet(CHOSEN),
    f"{DETAILS}/details_sums|0_{STAMP}.parquet": parquet(SUMS),
    f"out/results/org/model/results_{STAMP}.json": json.dumps(RESULTS, indent=2).encode(),
    f"new/details/org/new/{STAMP}/details_shapes|0_{STAMP}.parquet": parquet(UNDERLINED),
    f"{OLD_DETAILS}/details_harness|colours:bright|5_{OLD_STAMP}.parquet": parquet(OLD),
    f"{OLD_DETAILS}/details_harness|sums|0_{OLD_STAMP}.parquet": parquet(OLD_WRITTEN),
}
OPTIONS = [ReadOptions(), ReadOptions(model="org/other", empty="missing")]
