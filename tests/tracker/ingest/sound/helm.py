"""Run folders of HELM: joint and separate options, written answers, perturbations, splits and training trials."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracker.ingest.measurement import ReadOptions

COSTS = {"num_prompt_tokens": 11, "inference_runtime": 0.25, "logprob": -1.5}
TYPOS = {"name": "typos", "robustness": True, "fairness": False, "computed_on": "perturbed", "prob": 0.1}


def stat(name: str, value: float, split: str, perturbation: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One statistic, as HELM keeps it."""
    result = {"name": name, "split": split} | ({"perturbation": perturbation} if perturbation else {})
    return {
        "name": result,
        "count": 1,
        "sum": value,
        "sum_squared": value**2,
        "min": value,
        "max": value,
        "mean": value,
    }


def entry(
    key: str,
    scores: Mapping[str, float],
    split: str = "test",
    trial: int = 0,
    perturbation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The statistics of one instance."""
    result: dict[str, Any] = {"instance_id": key, "train_trial_index": trial}
    if perturbation:
        result["perturbation"] = perturbation
    result["stats"] = [stat(name, value, split, perturbation) for name, value in {**scores, **COSTS}.items()]
    return result


def means(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What stats.json says of them: the mean of the trials' means, and what HELM makes of perturbations."""
    values: dict[str, dict[int, list[float]]] = {}
    for entry in entries:
        for outcome in entry["stats"]:
            trials = values.setdefault(json.dumps(outcome["name"]), {})
            trials.setdefault(entry["train_trial_index"], []).append(outcome.get("mean", 0.0))
    result = [
        {
            "name": json.loads(name),
            "count": len(trials),
            "mean": sum(sum(trial) / len(trial) for trial in trials.values()) / len(trials),
        }
        for name, trials in values.items()
    ]
    worst = {"name": "robustness", "robustness": True, "fairness": False, "computed_on": "worst"}
    return [*result, {**stat("exact_match", 0.0, "test", worst)}]


def state(
    key: str,
    output: str | None,
    references: Sequence[str],
    right: Sequence[int],
    split: str = "test",
    *,
    lettered: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """One request and its result; ``said`` None is a request that failed."""
    perturbation = more.pop("perturbation", None)
    instance = {
        "input": {"text": f"Question of {key}?"},
        "references": [
            {"output": {"text": text}, "tags": ["correct"] if place in right else []}
            for place, text in enumerate(references)
        ],
        "split": split,
        "id": key,
    }
    if perturbation:
        instance |= {"perturbation": perturbation, "input": {"text": f"Qeustion of {key}?"}}
    completions = [] if output is None else [{"text": "…", "logprob": -9.0}, {"text": output, "logprob": -0.5}]
    result: dict[str, Any] = {"instance": instance, "train_trial_index": 0, **more}
    if lettered:
        result["output_mapping"] = {chr(65 + place): text for place, text in enumerate(references)}
    request = {"model": "org/model", "prompt": "Examples. Question?", "temperature": 0.0}
    return result | {"request": request, "result": {"success": output is not None, "completions": completions}}


def spec(name: str, method: str, **adapter: Any) -> dict[str, Any]:
    """The specification of a run."""
    result = {"method": method, "model": "org/model", "model_deployment": "host/model", "max_train_instances": 5}
    return {
        "name": name,
        "scenario_spec": {"class_name": "a.Scenario", "args": {}},
        "adapter_spec": result | {"max_eval_instances": 1000, "num_train_trials": 1, "temperature": 0.0, **adapter},
        "metric_specs": [],
        "groups": ["group"],
    }


OPTIONS_AB = ["Paris", "Rome"]
JOINT = [
    entry("id1", {"exact_match": 1.0, "exact_match@5": 1.0}),
    entry("id2", {"exact_match": 0.0, "exact_match@5": 1.0}),
    entry("id3", {"exact_match": 1.0, "exact_match@5": 1.0}, "valid"),
    entry("id1", {"exact_match": 0.0, "exact_match@5": 0.0}, perturbation=TYPOS),
    entry("id4", {"exact_match": 0.0, "exact_match@5": 0.0}),
    entry("id5", {"exact_match": 0.0, "exact_match@5": 0.0}),
]
JOINT_STATES = [
    state("id1", " A", OPTIONS_AB, [0], lettered=True),
    state("id2", " A", OPTIONS_AB, [1], lettered=True),
    state("id3", " B", OPTIONS_AB, [1], "valid", lettered=True),
    state("id1", " B", OPTIONS_AB, [0], lettered=True, perturbation=TYPOS),
    state("id4", None, OPTIONS_AB, [0], lettered=True),
    state("id5", " ", OPTIONS_AB, [0], lettered=True),
]
WRITTEN = [
    entry(key, {"f1_score": value, "rouge_l": value / 2}, "valid", trial)
    for trial, values in enumerate(((0.5, 1.0), (0.25, 0.5)))
    for key, value in zip(("id7", "id8"), values, strict=True)
]
WRITTEN_STATES = [
    state(key, message, ["a cat", "the cat"], [0, 1], "valid", train_trial_index=trial)
    for trial in (0, 1)
    for key, message in (("id7", "cat\n"), ("id8", "the cat"))
]
SEPARATE = [
    entry("id1", {"exact_match": 1.0, "predicted_index": 1}),
    entry("id2", {"exact_match": 0.0, "predicted_index": 0}),
]
SEPARATE_STATES = [
    state(key, text, OPTIONS_AB, [1], reference_index=place, request_mode=mode)
    for key in ("id1", "id2")
    for mode in ("original", "calibration")
    for place, text in enumerate(OPTIONS_AB)
]


def folder(
    name: str,
    entries: Sequence[Mapping[str, Any]],
    states: Sequence[Mapping[str, Any]],
    result: Mapping[str, Any],
    indent: int | None = None,
) -> dict[str, bytes]:
    """The files of one run."""
    contents = {
        "per_instance_stats.json": entries,
        "run_spec.json": result,
        "scenario.json": {"name": "scenario", "description": "A scenario.", "tags": []},
        "scenario_state.json": {"adapter_spec": result["adapter_spec"], "request_states": states},
        "stats.json": means(entries),
    }
    return {f"{name}/{file}": json.dumps(content, indent=indent).encode() for file, content in contents.items()}


FILES = {
    **folder(
        "mmlu-subject=cities,method=multiple_choice_joint,model=org_model",
        JOINT,
        JOINT_STATES,
        spec("mmlu:subject=cities,method=multiple_choice_joint,model=org_model", "multiple_choice_joint"),
        indent=2,
    ),
    **folder("story", WRITTEN, WRITTEN_STATES, spec("story:model=org_model", "generation", max_eval_instances=2)),
    **folder(
        "two",
        SEPARATE,
        SEPARATE_STATES,
        spec("two:dataset=x,level=1,model=org_model", "multiple_choice_separate_calibrated"),
    ),
    # The statistics alone, gzipped.
    "math:subject=sums,model=org_model/per_instance_stats.json.gz": gzip.compress(
        json.dumps([entry("id1", {"math_equiv": 1.0})]).encode(), mtime=0
    ),
}
OPTIONS = [
    ReadOptions(model="org/other", empty="missing", errored="wrong"),
    ReadOptions(model="org/other", metric="logprob", splits=("test",)),
    ReadOptions(),
]
