"""Checks of the content of prompts, at ingest, in `doctor` and in `suffrage prompts check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracker.cli import suffrage
from tracker.prompt_checks import EQUAL_OPTIONS, NOT_AN_OPTION, SEVERAL_REFERENCES, PromptChecks

ROWS = [
    {"id": "q1", "question": "What is 1 + 1?", "choices": ["1", "2"], "answer": "C"},
    {"id": "q2", "question": "What is 2 + 2?", "choices": ["4", "4 "], "answer": "A"},
    {"id": "q3", "question": "What is 3 + 3?", "choices": ["6", "7"], "answer": "A"},
    {"id": "q4", "question": "What is 3 + 3?", "choices": ["6", "7"], "answer": "B"},
    {"id": "q5", "question": "What is 4 + 4?", "choices": ["8", "9"], "answer": "9"},
]
EXPECTED = {NOT_AN_OPTION: ["q1"], EQUAL_OPTIONS: ["q2"], SEVERAL_REFERENCES: ["q3", "q4"]}


@pytest.mark.parametrize(
    ("prompts", "problem", "labels"),
    [
        ([("h", ["x", "y"], "B")], NOT_AN_OPTION, []),
        ([("h", ["x", "y"], " y ")], NOT_AN_OPTION, []),
        ([("h", ["x", "y"], "A, B")], NOT_AN_OPTION, []),
        ([("h", ["x", "y"], "C")], NOT_AN_OPTION, [0]),
        ([("h", ["x", "y"], "z")], NOT_AN_OPTION, [0]),
        ([("h", ["x", "y"], None)], NOT_AN_OPTION, []),
        ([("h", None, "z")], NOT_AN_OPTION, []),
        ([("h", ["x", "x "], "A")], EQUAL_OPTIONS, [0]),
        ([("h", ["x", "X"], "A")], EQUAL_OPTIONS, []),
        ([("h", ["x", "y"], "A"), ("h", ["x", "y"], "x")], SEVERAL_REFERENCES, []),
        ([("h", ["x", "y"], "A"), ("h", ["x", "y"], "B"), ("h", ["x", "y"], "A")], SEVERAL_REFERENCES, [0, 1]),
        ([("h", None, "1"), ("g", None, "2"), ("h", None, None)], SEVERAL_REFERENCES, []),
        ([(None, None, "1"), (None, None, "2")], SEVERAL_REFERENCES, []),
    ],
)
def test_each_problem(
    prompts: list[tuple[str | None, list[str] | None, str | None]], problem: str, labels: list[int]
) -> None:
    checks: PromptChecks[int] = PromptChecks()
    for label, prompt in enumerate(prompts):
        checks.add(label, *prompt)
    assert checks.found_by_problem[problem] == labels


def test_ingest_doctor_and_the_command_report_the_same_problems(tmp_path: Path) -> None:
    path, database = tmp_path / "prompts.jsonl", f"sqlite:///{tmp_path / 'store.db'}"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        result = CliRunner().invoke(suffrage, [*arguments, "--database", database])
        assert result.exit_code == code, result.output
        return result.stdout, result.stderr

    _, messages = run("ingest", str(path), "--benchmark", "quiz", "--no-mlflow")
    for problem, names in EXPECTED.items():
        assert f"{problem}: {', '.join(names)}. List them: suffrage prompts check quiz" in messages
    rows = json.loads(run("prompts", "check", "quiz", "--format", "json", code=2)[0])
    assert [(row["problem"], row["prompt"]) for row in rows] == [(kind, q) for kind in EXPECTED for q in EXPECTED[kind]]
    assert "4 problems" in run("prompts", "check", "quiz", code=2)[1]
    checks = json.loads(run("doctor", "--no-mlflow", "--format", "json", code=2)[0])
    result = next(check for check in checks if check["name"] == "prompts")
    assert result["verdict"] == "warning"
    assert all(f"{problem}: {len(names)}".lower() in result["result"].lower() for problem, names in EXPECTED.items())
    assert result["advice"] == "List them: suffrage prompts check quiz"


def test_sound_prompts_have_no_problems(tmp_path: Path) -> None:
    path, database = tmp_path / "prompts.jsonl", f"sqlite:///{tmp_path / 'store.db'}"
    path.write_text("".join(json.dumps(row) + "\n" for row in (ROWS[2], ROWS[4])))
    assert not CliRunner().invoke(suffrage, ["ingest", str(path), "--benchmark", "b", "--database", database]).exception
    result = CliRunner().invoke(suffrage, ["prompts", "check", "b", "--database", database])
    assert (result.exit_code, result.output) == (0, "b: 0 problems of prompts.\n")
