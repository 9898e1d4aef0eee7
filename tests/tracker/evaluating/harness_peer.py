"""What lm-evaluation-harness makes of models, tasks and single requests: run in a process of its own.

    python harness_peer.py JOB.json FOUND.json

Its import sets environment variables, and an evaluation seeds every global generator; neither may reach other tests.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from lm_eval_task_peer import evaluate_files


def task_config(name: str, prompts: Path, examples: list[dict[str, Any]], choices: str, prompt: str) -> dict[str, Any]:
    """A task over a local file of JSON lines, as users write it in YAML; the same examples before every prompt.

    Args:
        name: of the task.
        prompts: the file.
        examples: rows like those of the file.
        choices, prompt: Jinja templates over a row.
    """
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(prompts)}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": prompt,
        "doc_to_choice": choices,
        "doc_to_target": "gold",
        "num_fewshot": len(examples),
        "fewshot_config": {"sampler": "first_n", "samples": examples},
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }


def _answered(model: Any, tasks: Any) -> dict[str, Any]:
    import lm_eval

    results = lm_eval.evaluate(lm=model, task_dict=tasks, bootstrap_iters=0, verbosity="ERROR")
    return {
        name: [
            {
                "text": row["arguments"][0][0],
                "continuations": [continuation for _, continuation in row["arguments"]],
                "logprobs": [logprob for ((logprob, _),) in row["resps"]],
                "acc": row["acc"],
                "acc_norm": row["acc_norm"],
            }
            for row in sorted(rows, key=lambda row: int(row["doc_id"]))
        ]
        for name, rows in results["samples"].items()
    }


def _requested(model: Any, pairs: list[list[str]]) -> list[float]:
    from lm_eval.api.instance import Instance

    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=(text, option), idx=place)
        for place, (text, option) in enumerate(pairs)
    ]
    return [logprob for logprob, _ in model.loglikelihood(requests, disable_tqdm=True)]


def _stored(model: Any, tasks: list[dict[str, Any]], folder: Path, name: str) -> None:
    """Evaluate as users do; the files that the command line writes, and a store with what the callback stores."""
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    from tracker.integrations.lm_eval import simple_evaluate, store_results

    database, writer = f"sqlite:///{folder}/stored.db", EvaluationTracker(output_path=str(folder / "written"))
    options = {"tasks": tasks, "task_manager": TaskManager(include_defaults=False), "bootstrap_iters": 100}
    options |= {"model_args": {"pretrained": name}, "evaluation_tracker": writer, "verbosity": "ERROR"}
    results = simple_evaluate(model, database=database, output_path=folder / "kept", **options)
    shutil.copy(folder / "stored.db", folder / "again.db")
    store_results(results, database=f"sqlite:///{folder}/again.db")
    samples = results.pop("samples")
    writer.save_results_aggregated(results=results, samples=samples)
    for task, rows in samples.items():
        writer.save_results_samples(task_name=task, samples=rows)


def main(job: Path, results: Path) -> None:
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    job_settings = json.loads(job.read_text())
    files = evaluate_files(job_settings["files"])
    tasks = TaskManager(include_defaults=False).load(job_settings["tasks"]) if job_settings["tasks"] else {}
    answers = {}
    for family, folder in job_settings["models"].items():
        model = HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=8)
        answers[family] = {
            "samples": _answered(model, tasks),
            "requests": _requested(model, job_settings["requests"]),
        }
        if family == job_settings["stored"]:
            _stored(model, job_settings["tasks"], results.parent, f"org/{family}")
    results.write_text(json.dumps({"families": answers, "files": files}, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
