"""Results of promptfoo, of versions 3 and 2."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from tracker.ingest.measurement import ReadOptions

GPT, LLAMA = {"id": "openai:gpt", "label": ""}, {"id": "local:llama", "label": "Llama"}
PLAIN, BRIEF = ("p1", "What is {{sum}}?"), ("p2", "Briefly: {{sum}}?")


def result(
    test: int = 0,
    success: bool = True,
    provider: Mapping[str, Any] = GPT,
    template: tuple[str, str] = PLAIN,
    column: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """A result of version 3; a keyword with None takes a field out."""
    outcome = {
        "id": f"r{test}-{column}",
        "promptIdx": column,
        "testIdx": test,
        "testCase": {
            "vars": {"sum": f"{test}+1"},
            "assert": [{"type": "equals", "value": str(test + 1)}],
            "metadata": {"level": 1, "long": "x" * 300},
        },
        "promptId": template[0],
        "provider": provider,
        "prompt": {"raw": template[1].replace("{{sum}}", f"{test}+1"), "label": template[1]},
        "vars": {"sum": f"{test}+1"},
        "response": {"output": str(test + 1) if success else "no", "tokenUsage": {"total": 3}, "cached": False},
        "error": None if success else "Expected another output",
        "failureReason": 0 if success else 1,
        "success": success,
        "score": 1 if success else 0.25,
        "latencyMs": 5,
        "gradingResult": {
            "pass": success,
            "score": 1,
            "reason": 'So "it" } is',
            "componentResults": [{"pass": success}],
        },
        "namedScores": {"tone": 0.5},
        "cost": 0,
    }
    return {name: value for name, value in {**outcome, **more}.items() if name == "error" or value is not None}


def failed(test: int = 0, **more: Any) -> dict[str, Any]:
    """A result whose provider failed."""
    outcome = {
        "failureReason": 2,
        "error": "429",
        "score": 0,
        "namedScores": {},
        "response": None,
        "gradingResult": None,
    }
    return result(test, False, **{**outcome, **more})


def output(results: Sequence[Mapping[str, Any]], version: int = 3, **more: Any) -> dict[str, Any]:
    """All of a file; further keywords replace its statistics."""
    wrong = [result for result in results if not result.get("success")]
    errors = [item for item in wrong if item.get("failureReason") == 2]
    stats = {"successes": len(results) - len(wrong), "failures": len(wrong) - len(errors), "errors": len(errors)}
    inner = {"version": version, "timestamp": "2026-01-02T03:04:05.678Z", "results": list(results)}
    if version == 2:
        stats = {"successes": stats["successes"], "failures": len(wrong)}
        inner["table"] = {"head": {"prompts": [], "vars": ["sum"]}, "body": [{"outputs": [], "vars": ["1"]}]}
    return {
        "evalId": "eval-Xyz-2026-01-02T03:04:05",
        "results": {**inner, "stats": {**stats, "tokenUsage": {"total": 9}, **more}},
        "config": {"description": "sums", "providers": [{"id": "openai:gpt", "config": {"apiKey": "hidden"}}]},
        "shareableUrl": None,
        "metadata": {"promptfooVersion": "0.120.1", "nodeVersion": "v22"},
    }


def old(item: Mapping[str, Any]) -> dict[str, Any]:
    """The same result as version 2 has it."""
    lacking = ("promptIdx", "testIdx", "testCase", "promptId", "failureReason", "namedScores")
    return {name: value for name, value in item.items() if name not in lacking}


SEVERAL = [
    result(0), result(1, False), failed(2),
    result(0, provider=LLAMA, column=1), result(1, provider=LLAMA, column=1), result(2, False, LLAMA, column=1),
    *[result(test, template=BRIEF, column=2) for test in range(3)],
    *[result(test, False, LLAMA, BRIEF, 3) for test in range(3)],
]  # fmt: skip
CSV = """sum,[openai:gpt] What is {{sum}}?,Status,Score,Named Scores,Grader Reason,Comment,[local:llama] What is {{sum}}?,Status,Score,Named Scores,Grader Reason,Comment
0+1,1,PASS,1.00,"{""tone"":0.5}",good,,no,FAIL,0.25,,bad,
1+1,2,PASS,1.00,"{""tone"":0.5}",good,,,ERROR,0.00,,429,
"""  # noqa: E501 - a heading of promptfoo
OLD_CSV = """sum,[openai:gpt] What is {{sum}}?
0+1,"[PASS] (1.00)

1"
1+1,"[FAIL] (0.25)

no"
"""
FILES = {
    "lines.jsonl": "".join(json.dumps(item) + "\n" for item in SEVERAL).encode(),
    "results.yaml": yaml.safe_dump(output(SEVERAL), sort_keys=False).encode(),
    "table.csv": CSV.encode(),
    "old-table.csv": OLD_CSV.encode(),
    "new.json": json.dumps(output(SEVERAL), indent=2).encode(),
    "repeated.json": json.dumps(output([result(0), result(0, False, vars={"sum": "0+1"}, testIdx=1)])).encode(),
    "results.json": json.dumps(
        {name: part for name, part in output([*map(old, SEVERAL)], 2).items() if name not in ("evalId", "metadata")}
    ).encode(),
}
OPTIONS = [ReadOptions(benchmark="b"), ReadOptions(errored="wrong", empty="missing", metric="accuracy")]
