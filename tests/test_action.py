"""The GitHub Action in action.yml, which runs `suffrage gate`; docs/how-to/continuous-integration.md describes it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tracker.cli.commands.gate import command

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
PAGE = (ROOT / "docs/how-to/continuous-integration.md").read_text()
(GATE,) = (step for step in ACTION["runs"]["steps"] if step.get("id") == "gate")
RECORDER = f"""#!{sys.executable} -S
import json, os, sys
with open(os.environ["RECORD"], "w") as file:
    json.dump(sys.argv[1:], file)
print("a message", file=sys.stderr)
sys.exit(int(os.environ["CODE"]))
"""


def run_step(folder: Path, program: str, inputs: Mapping[str, str], **environment: str) -> tuple[int, str, str]:
    """Run the script of the action with a program in place of the installed command.

    Returns:
        The exit code, the summary and the outputs.
    """
    installed = folder / "suffrage/bin"
    installed.mkdir(parents=True, exist_ok=True)
    (installed / "suffrage").write_text(program)
    (installed / "suffrage").chmod(0o755)
    defaults = {name: str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()}
    values = {f"INPUT_{name.upper().replace('-', '_')}": value for name, value in {**defaults, **inputs}.items()}
    assert set(GATE["env"]) <= set(values)
    files = {name: str(folder / name.lower()) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for path in files.values():
        Path(path).write_text("")
    bash = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", GATE["run"]]  # as a runner calls it
    variables = {**os.environ, **values, **files, "RUNNER_TEMP": str(folder), **environment}
    done = subprocess.run(bash, cwd=folder, env=variables, check=False, capture_output=True)
    return done.returncode, *(Path(path).read_text() for path in files.values())


class TestDefinition:
    def test_no_input_is_part_of_a_command(self) -> None:
        scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
        assert len(scripts) == 2
        assert [script for script in scripts if "${{" in script] == []
        assert all(
            value == f"${{{{ inputs.{name[6:].lower().replace('_', '-')} }}}}" for name, value in GATE["env"].items()
        )

    def test_every_option_of_the_script_is_one_of_the_command_with_its_default(self) -> None:
        options = {option: parameter for parameter in command.params for option in parameter.opts}
        used = re.findall(r"(--[a-z-]+)[ )]", GATE["run"])
        assert len(used) >= 9
        assert set(used) - {"--"} <= set(options)
        for name in ("margin", "alpha", "min-coverage"):
            assert float(ACTION["inputs"][name]["default"]) == options[f"--{name}"].default

    def test_the_page_lists_every_input(self) -> None:
        names = re.findall(r"^\| `([a-z-]+)` \|", PAGE.split("## On GitHub")[1], re.M)
        assert names == list(ACTION["inputs"])
        (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.S)
        (step,) = (step for step in yaml.safe_load(example)["jobs"]["benchmark"]["steps"] if "with" in step)
        assert set(step["with"]) <= set(ACTION["inputs"])


class TestScript:
    NASTY = 'a b\'; touch "$(touch pwned)" `touch pwned` $HOME *'

    @pytest.mark.parametrize(("code", "output"), [(0, "regression=false\n"), (3, "regression=true\n"), (1, "")])
    def test_inputs_are_single_arguments_and_the_exit_code_is_that_of_the_command(
        self, tmp_path: Path, code: int, output: str
    ) -> None:
        record = tmp_path / "arguments.json"
        inputs = {"results": self.NASTY, "baseline": "--help", "models": f"one\n\n{self.NASTY}\n", "metric": ""}
        done = run_step(tmp_path, RECORDER, inputs, RECORD=str(record), CODE=str(code))
        summary = "" if code in (0, 3) else "## The results could not be compared\n\n    a message\n"
        assert done == (code, summary, output)
        assert json.loads(record.read_text()) == [
            "gate", "--summary", str(tmp_path / "github_step_summary"), "--baseline=--help", "--margin=0",
            "--alpha=0.05", "--min-coverage=0.95", "--model=one", f"--model={self.NASTY}", "--", self.NASTY,
        ]  # fmt: skip
        assert not list(tmp_path.rglob("pwned"))

    @pytest.mark.soak
    def test_two_folders_of_results_pass_without_a_regression_and_fail_with_one(self, tmp_path: Path) -> None:
        program = f'#!/bin/sh\nexec {sys.executable} -m tracker.cli "$@"\n'
        n_correct = {"baseline": 140, "similar": 139, "worse": 110}
        for name, n in n_correct.items():
            rows = "".join(f"assistant,q{i},{int(i < n)}\n" for i in range(200))
            (tmp_path / name).mkdir()
            (tmp_path / name / "scores.csv").write_text(f"model,prompt_id,accuracy\n{rows}")
        inputs = {"baseline-results": "baseline", "benchmark": "quiz"}

        def run(results: str) -> tuple[int, str, str]:
            return run_step(tmp_path, program, {**inputs, "results": results}, PYTHONPATH=str(ROOT))

        code, summary, output = run("similar")
        assert (code, output) == (0, "regression=false\n")
        assert summary.startswith("## No significant regression in 1 comparison\n")
        code, summary, output = run("worse")
        assert (code, output) == (3, "regression=true\n")
        assert "worse than its earlier results by 0.1500 on 200 prompts of quiz (95% interval " in summary
        code, summary, output = run("missing")
        assert (code, output) == (1, "")
        assert summary.startswith("## The results could not be compared\n\n    Error: missing: does not exist.")
