"""Results and predictions of OpenCompass, of every shape."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions

RUN = "outputs/default/20260102_030405"


def turn(text: str) -> list[dict[str, str]]:
    """A conversation with an example, as it is put to a model that chats."""
    return [
        {"role": "HUMAN", "prompt": "1+1?"},
        {"role": "BOT", "prompt": "2"},
        {"role": "HUMAN", "prompt": text},
    ]


def written(text: str, output: Any, gold: Any = None) -> dict[str, Any]:
    """A prediction that was written; a reference answer that is 0 or empty is not kept."""
    return {"origin_prompt": turn(text), "prediction": output} | ({"gold": gold} if gold else {})


def perplexity(output: str, gold: str) -> dict[str, Any]:
    """A prediction by the perplexity of the options."""
    labels = {
        f"label: {label}": {"testing input": f"Ice is {word}", "prompt": f"Ice is {word}", "PPL": value}
        for label, word, value in (("A", "air", 3.5), ("B", "water", 1.25))
    }
    return {"in-context examples": "", "origin_prompt": "Ice is air", **labels, "prediction": output, "gold": gold}


def conditional(chances: list[float], gold: Any) -> dict[str, Any]:
    """A prediction by the probabilities of the options."""
    return {
        "testing input": "Is ice water?",
        "prompt": "Is ice water?",
        "choices": ["no", "yes"],
        "prediction": chances,
        "pred_label": chances.index(max(chances)),
        "gold": gold,
    }


DETAILS = {
    "accuracy": 50.0,
    "details": {
        "type": "GEN",
        "0": {"prompt": turn("2+2?"), "origin_prediction": "It is 4", "predictions": "4", "references": "4",
              "correct": True},
        "1": {"prompt": turn("2-2?"), "origin_prediction": "1", "predictions": "1", "references": "0",
              "correct": False},
    },
}  # fmt: skip
PERPLEXITY_DETAILS = {
    "accuracy": 100.0,
    "details": {
        "type": "PPL",
        "0": {
            "origin_prediction": {"origin_prompt": "Ice is", "gold": "B", "A": {"PPL": 3.5}, "B": {"PPL": 1.25}},
            "predictions": "B",
            "references": "B",
            "correct": True,
        },
    },
}
REPEATED = {
    "accuracy (2 runs average)": 75.0,
    "G-Pass@2_0.5": 100.0,
    "details": [
        {"example_abbr": "sums_0", "pred": ["4", "5"], "answer": ["4", "4"], "correct": [True, False]},
        {"example_abbr": "sums_1", "pred": ["0", "0"], "answer": ["0", "0"], "correct": [True, True]},
    ],
}
EXACT = {
    "score": 50.0,
    "details": [
        {"pred": "Paris", "answer": ["Paris", "paris"], "correct": True},
        {"pred": "", "answer": ["Rome"], "correct": False},
    ],
}
FILES = {
    f"{RUN}/{name}": json.dumps(content, indent=4, ensure_ascii=False).encode()
    for name, content in {
        "results/model-7b/sums_gen.json": DETAILS,
        "results/model-7b/ice_ppl.json": PERPLEXITY_DETAILS,
        "results/model-7b/sums_repeated.json": REPEATED,
        "results/model-7b/cities.json": EXACT,
        "results/model-7b/only_accuracy.json": {"accuracy": 12.5, "rouge1": 40.0, "n": 8, "note": "x"},
        "results/model-7b/no_details.json": {"accuracy": 66.6667},
        "predictions/model-7b/sums_gen.json": {"0": written("2+2?", "It is 4", "4"), "1": written("2-2?", "1", "0")},
        "predictions/model-7b/no_details_0.json": {"0": written("2+2?", "4", "4"), "1": written("2-2?", "0", 0)},
        "predictions/model-7b/no_details_1.json": {
            "0": written("3+3?", ["6", "7"], ["6", "six"]),
            "1": written("4+4?", "", "8"),
        },
        "predictions/model-7b/ice_ppl_alone.json": {"0": perplexity("B", "B"), "1": perplexity("A", "B")},
        "predictions/model-7b/ice_clp.json": {
            "0": conditional([0.25, 0.75], 1),
            "1": conditional([0.5, 0.25], "yes"),
            "2": conditional([0.5, 0.25], None),
        },
    }.items()
}
FILES[f"{RUN}/predictions/model-7b/tmp_going_on.jsonl"] = "".join(
    json.dumps({"idx": place, **written(f"{place}+1?", str(place + 1), str(place + 1))}) + "\n" for place in range(3)
).encode()
OPTIONS = [ReadOptions(), ReadOptions(model="org/other", benchmark="b", metric="em", empty="missing")]
