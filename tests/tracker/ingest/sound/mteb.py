"""Results of MTEB: a task in one language, and one in several."""

from __future__ import annotations

import json
from typing import Any

from tracker.ingest.measurement import ReadOptions


def result(task: str, **scores: list[float]) -> dict[str, Any]:
    return {
        "dataset_revision": "0fd18e25",
        "task_name": task,
        "evaluation_time": 1.5,
        "mteb_version": "1.18.0",
        "scores": {
            split: [
                {"hf_subset": f"l{n}", "languages": ["eng-Latn"], "accuracy": 0.1, "f1": 0.2, "main_score": value}
                for n, value in enumerate(values)
            ]
            for split, values in scores.items()
        },
    }


META = {"name": "org/model", "revision": "8b32", "n_parameters": 22713216, "open_weights": True}
FOLDER = "results/org__model/8b32"
FILES = {
    f"{FOLDER}/Banking77.json": json.dumps(result("Banking77", test=[0.8])).encode(),
    f"{FOLDER}/Massive.json": json.dumps(result("Massive", validation=[0.1, 0.2], test=[0.3, 0.5]), indent=2).encode(),
    f"{FOLDER}/model_meta.json": json.dumps(META).encode(),
    "results/other__model/no_revision/STS.json": json.dumps(result("STS", dev=[-0.25])).encode(),
}
OPTIONS = [ReadOptions(), ReadOptions(splits=("validation", "test", "dev"), model="m")]
