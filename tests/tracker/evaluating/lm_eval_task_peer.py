"""What lm-evaluation-harness makes of task files: run in a process of its own.

python lm_eval_task_peer.py JOB.json FOUND.json
"""

from __future__ import annotations

from typing import Any


def _score_texts(task: Any, texts: list[str]) -> list[dict[str, float]]:
    """What the harness scores some texts as responses to the first document."""
    from lm_eval.api.instance import Instance

    document = next(iter(task.eval_docs))
    scored = []
    for text in texts:
        scores = {}
        for pipeline in task._filters:
            request = Instance(request_type="generate_until", doc=document, arguments=("", {}), idx=0)
            request.resps = [text]
            pipeline.apply([request])
            suffix = "" if pipeline.name == "none" else f",{pipeline.name}"
            for metric, value in task.process_results(document, [request.filtered_resps[pipeline.name]]).items():
                scores[f"{metric}{suffix}"] = float(value)
        scored.append(scores)
    return scored


def _requests(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests, responses and scores by document."""
    documents: dict[int, dict[str, Any]] = {}
    for row in rows:
        entry = documents.setdefault(
            row["doc_id"],
            {
                "arguments": [list(pair) for pair in row["arguments"]],
                "responses": [response[0] for response in row["resps"]],
                "scores": {},
            },
        )
        suffix = "" if row["filter"] == "none" else f",{row['filter']}"
        entry["scores"] |= {f"{name}{suffix}": float(row[name]) for name in row["metrics"]}
    return [documents[key] for key in sorted(documents)]


def evaluate_files(settings: dict[str, Any]) -> dict[str, Any]:
    """What the harness finds for task files: requests, responses and scores, and its results."""
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    model = HFLM(pretrained=settings["model"], device="cpu", dtype="float32", batch_size=4)
    manager = TaskManager(include_defaults=False, include_path=settings["folder"])
    tasks = manager.load(settings["tasks"])["tasks"]
    for task in tasks.values():
        task.set_fewshot_seed(1234)
    results = lm_eval.evaluate(lm=model, task_dict={"tasks": tasks}, bootstrap_iters=0, verbosity="ERROR")
    return {
        name: {
            "documents": _requests(results["samples"][name]),
            "texts": _score_texts(task, settings["texts"]) if task.OUTPUT_TYPE == "generate_until" else [],
            "results": {key: value for key, value in results["results"][name].items() if isinstance(value, float)},
        }
        for name, task in tasks.items()
    }
