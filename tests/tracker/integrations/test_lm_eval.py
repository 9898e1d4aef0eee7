"""The command of docs/how-to/integrations.md, with a harness that only writes files.

The real one is compared in tests/tracker/evaluating/test_against_lm_eval.py, and here by `make soak`.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tracker
from tracker.integrations import lm_eval
from tracker.integrations.lm_eval import run_harness, store_results

STAMP = "2026-01-20T03-04-05.000000"
RESULTS = {
    "results": {"sums": {"alias": "sums", "acc,none": 2 / 3}},
    "configs": {"sums": {"task": "sums", "output_type": "multiple_choice", "metric_list": [{"metric": "acc"}]}},
    "n-samples": {"sums": {"original": 3, "effective": 3}},
    "config": {"model": "hf", "model_args": {"pretrained": "org/one"}},
    "model_name": "org/one",
    "lm_eval_version": "0.4.13",
}


def write(folder: Path, name: str = "results") -> None:
    """Files of three prompts, as the harness writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_{STAMP}.json").write_text(json.dumps(RESULTS))
    rows = (
        {"doc_id": n, "doc": {"question": f"{n}+1?"}, "target": str(n + 1), "filter": "none", "metrics": ["acc"],
         "arguments": {"gen_args_0": {"arg_0": f"{n}+1?", "arg_1": f" {n + 1}"}}, "resps": [[[-1.0, True]]],
         "filtered_resps": [[-1.0, True]], "acc": float(n != 1)}
        for n in range(3)
    )  # fmt: skip
    (folder / f"samples_sums_{STAMP}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch, sqlite_url: str) -> list[list[str]]:
    """Arguments of each run of a harness that writes its files, and fails with the task `fail`."""
    monkeypatch.setenv("SUFFRAGE_DATABASE_URL", sqlite_url)
    runs: list[list[str]] = []

    def run(command: Sequence[str], **_: Any) -> SimpleNamespace:
        assert command[:3] == [sys.executable, "-m", "lm_eval"]
        arguments = list(command[3:])
        runs.append(arguments)
        path = Path("configured")
        if "--output_path" in arguments:
            path = Path(arguments[arguments.index("--output_path") + 1])
        if "fail" in arguments:
            return SimpleNamespace(returncode=3)
        write(path.parent if path.suffix == ".json" else path / "org__one", path.stem if path.suffix else "results")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(lm_eval.subprocess, "run", run)
    return runs


def n_scores(url: str) -> int:
    with tracker.open(url) as store:
        return int(store.sql("SELECT count(*) AS n FROM score")["n"][0].as_py())


class TestCommandLine:
    @pytest.mark.parametrize("output", [[], ["--output_path", "out"], ["--output_path", "out/mine.json"]])
    def test_what_the_harness_writes_is_stored(self, harness: Any, sqlite_url: str, output: list[str]) -> None:
        assert run_harness(["--model", "hf", "--tasks", "sums", *output]) == 0
        assert n_scores(sqlite_url) == 3
        assert harness[0].count("--output_path") == harness[0].count("--log_samples") == 1
        kept = Path(harness[0][harness[0].index("--output_path") + 1])
        assert kept.exists() == (output == ["--output_path", "out"])

    def test_the_output_path_of_a_configuration_is_used(self, harness: Any, sqlite_url: str) -> None:
        Path("run.yaml").write_text("output_path: configured\n")
        assert run_harness(["run", "--config", "run.yaml"]) == 0
        assert n_scores(sqlite_url) == 3
        assert "--output_path" not in harness[0]

    def test_older_files_of_the_folder_are_left_alone(self, harness: Any, sqlite_url: str) -> None:
        write(Path("out"))
        assert run_harness(["--tasks", "fail", "--output_path", "out"]) == 3
        assert n_scores(sqlite_url) == 0

    @pytest.mark.parametrize("arguments", [["ls", "tasks"], ["--help"], []])
    def test_commands_that_evaluate_nothing_pass(self, harness: Any, arguments: list[str]) -> None:
        assert run_harness(arguments) == 0
        assert harness == [arguments]

    def test_files_that_cannot_be_stored_are_kept(
        self, harness: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "foreign.db").write_text("no store")
        monkeypatch.setenv("SUFFRAGE_DATABASE_URL", f"sqlite:///{tmp_path}/foreign.db")
        monkeypatch.setattr(lm_eval, "mkdtemp", lambda **_: str(tmp_path / "kept"))
        assert run_harness(["--tasks", "sums"]) == 0
        assert list((tmp_path / "kept").rglob("results_*.json"))


class TestPython:
    def test_a_process_without_results_stores_nothing(self) -> None:
        assert store_results(None) == []

    def test_results_that_cannot_be_written_never_fail_the_evaluation(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def fail(*_: Any) -> None:
            raise OSError("the disk is full")

        warnings: list[str] = []
        monkeypatch.setattr(lm_eval, "write_results", fail)
        monkeypatch.setattr(lm_eval.logger, "warning", lambda text, *facts: warnings.append(text % facts))
        assert store_results({"config": {}}, output_path=tmp_path) == []
        assert warnings[0].endswith(f"cannot write to {tmp_path}: the disk is full")


@pytest.mark.soak
@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is None, reason="lm-evaluation-harness is not installed")
def test_the_command_line_of_the_real_harness(
    language_model_folders: dict[str, Path], sqlite_url: str, tmp_path: Path
) -> None:
    rows = [{"question": f"{n}+1?", "options": ["1", "2", "3"], "gold": n} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/sums.yaml").write_text(
        f"task: sums\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {tmp_path}/rows.jsonl\n"
        "test_split: test\noutput_type: multiple_choice\ndoc_to_text: '{{question}}'\ndoc_to_choice: '{{options}}'\n"
        "doc_to_target: gold\nmetric_list:\n  - metric: acc\n"
    )
    command = [sys.executable, "-m", "tracker.integrations.lm_eval", "--model", "hf", "--device", "cpu"]
    command += ["--model_args", f"pretrained={language_model_folders['gpt2']}", "--tasks", "sums"]
    command += ["--include_path", str(tmp_path / "tasks")]
    environment = {"SUFFRAGE_DATABASE_URL": sqlite_url, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    ran = subprocess.run(
        command, env={**lm_eval_environment(), **environment}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    assert n_scores(sqlite_url) == 6  # acc and the probability of the reference answer
    assert "6 scores" in ran.stderr


def lm_eval_environment() -> dict[str, str]:
    """The environment, with this checkout first on the path."""
    import os

    return {**os.environ, "PYTHONPATH": str(Path(tracker.__file__).parents[1])}
