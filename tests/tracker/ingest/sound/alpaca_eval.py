"""Annotations of AlpacaEval, of made-up instructions."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions


def annotation(instruction: str, preference: Any, **fields: Any) -> dict[str, Any]:
    return {
        "dataset": "helpful_base",
        "instruction": instruction,
        "output_1": "from the baseline",
        "generator_1": "gpt4_1106_preview",
        "output_2": f"about {instruction}",
        "generator_2": "model-9b",
        "annotator": "weighted_alpaca_eval_gpt4_turbo",
        "preference": preference,
        **fields,
    }


PREFERENCES = [1.7328323962, 1.0, 2.0, 1.5, 0.0, 1.0000001]
ANNOTATIONS = [annotation(f"Question {n}?", preference) for n, preference in enumerate(PREFERENCES)]
FILES = {
    "model-9b/weighted_alpaca_eval_gpt4_turbo/annotations.json": json.dumps(ANNOTATIONS, indent=2).encode(),
    "old/annotations.json": json.dumps(
        [annotation("Why?", None, generator_1="text_davinci_003", annotator="claude"), annotation("Why?", 2)]
    ).encode(),
}
OPTIONS = [ReadOptions(), ReadOptions(errored="wrong", model="m")]
