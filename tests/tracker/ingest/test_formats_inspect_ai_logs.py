"""Logs of Inspect AI as they are in the world: real ones, one from store to store, and one of a gigabyte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sound.inspect_ai import LOG, SAMPLES, archive, header, reported, sample, whole

from tracker.database import connect
from tracker.ingest.measurement import ReadOptions, Scores, TaskScores
from tracker.ingest.parsing.detection import find_files, parse_file
from tracker.ingest.pipeline import ingest_file

A_GIGABYTE = 1 << 30
MAX_MEMORY = 300
N_BIG = 100_000

# What each real log says of itself, read off with jq: model, benchmark, metric, number of prompts, mean, limited.
REAL = {
    "data_arc_qwen.json": ("ollama/qwen2.5:0.5b", "arc_easy", "choice", 3, 1 / 3, True),
    "data_pubmedqa_gpt4o_mini.json": ("openai/azure/gpt-4o-mini", "pubmedqa", "choice", 2, 1.0, True),
    "data_with_llm_scoring.json": (
        "anthropic/claude-opus-4-6",
        "simpleqa_verified",
        "simpleqa_scorer",
        1000,
        0.431,
        False,
    ),
    "log_formats.eval": ("ollama/llama3.1", "popularity", "match", 1, 0.0, True),
    "log_read_sample.eval": ("ollama/gemma3", "popularity", "match", 1, 1.0, True),
    "mmlu-summary-choices.eval": ("openai/gpt-4o", "mmlu_0_shot", "choice", 1, 0.0, True),
    "rewritten_zstd/arc_qwen_zstd.eval": ("ollama/qwen2.5:0.5b", "arc_easy", "choice", 3, 1 / 3, True),
    "rewritten_zstd/mmlu_zstd.eval": ("openai/gpt-4o", "mmlu_0_shot", "choice", 1, 0.0, True),
}


def rows(engine: sa.Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


class TestRealLogs:
    @pytest.mark.parametrize("name", REAL)
    def test_come_to_the_numbers_that_they_report(self, shared: Path, name: str) -> None:
        path = shared / "samples" / "inspect" / name
        model, benchmark, metric, n_prompts, mean, limited = REAL[name]
        reading = parse_file(path, ReadOptions())
        assert reading.format == "inspect-ai"
        assert not any("reports" in warning and "whole task" not in warning for warning in reading.warnings)
        block = reading.measurements[0]
        assert isinstance(block, (Scores, TaskScores))
        result = (block.run.model, block.run.benchmark, block.metric.name, block.run.limited)
        assert result == (model, benchmark, metric, limited)
        assert block.values.mean() == pytest.approx(mean, abs=1e-12)
        if isinstance(block, Scores):
            assert (len(block.values), len(set(block.prompts.keys))) == (n_prompts, n_prompts)
            assert all(block.prompts.text or ())
        else:
            assert block.n_prompts == [n_prompts]

    def test_every_one_is_in_the_table(self, shared: Path) -> None:
        folder = shared / "samples" / "inspect"
        assert {str(path.relative_to(folder)) for path in find_files([folder])} == set(REAL)

    def test_a_log_rewritten_by_a_later_version_is_the_same_run(self, shared: Path, store: sa.Engine) -> None:
        folder = shared / "samples" / "inspect"
        ingest_file(store, folder / "data_arc_qwen.json")
        again = ingest_file(store, folder / "rewritten_zstd" / "arc_qwen_zstd.eval").changes
        assert (again.n_scores, again.n_prompts_new) == (0, 0)
        assert rows(store, "SELECT count(*) FROM run") == [(1,)]


class TestStore:
    def test_an_archive_and_the_json_of_one_log_are_one_run(self, store: sa.Engine, tmp_path: Path) -> None:
        (tmp_path / "a.eval").write_bytes(archive({"summaries.json": SAMPLES, "header.json": LOG}))
        (tmp_path / "b.json").write_text(json.dumps({**LOG, "samples": [whole(item) for item in SAMPLES]}))
        first = ingest_file(store, tmp_path / "a.eval").changes
        again = ingest_file(store, tmp_path / "b.json").changes
        assert (first.n_scores, again.n_scores, again.n_prompts_new) == (2, 0, 0)
        assert rows(store, "SELECT count(*) FROM prompt") == [(3,)]

    def test_tasks_that_the_user_gathers_are_one_run_and_a_rerun_another(
        self, store: sa.Engine, tmp_path: Path
    ) -> None:
        def result(name: str, task: str, value: str) -> None:
            head = header(task=task, eval_id=name)
            (tmp_path / f"{name}.eval").write_bytes(
                archive({"summaries.json": [sample(1, value=value, scorer=task)], "header.json": head})
            )
            ingest_file(store, tmp_path / f"{name}.eval", ReadOptions(benchmark="suite", metric="accuracy"))

        result("one", "sums", "C")
        result("two", "words", "I")
        assert rows(store, "SELECT label, n_scores FROM run") == [("", 2)]
        result("three", "sums", "I")
        assert rows(store, "SELECT n_scores FROM run ORDER BY id") == [(2,), (1,)]

    def test_what_precedes_the_damage_is_stored_only_where_the_user_reports_so(
        self, store: sa.Engine, tmp_path: Path
    ) -> None:
        path = tmp_path / "x.json"
        text = json.dumps({**LOG, "samples": [sample(1), sample(2), sample(3)]})
        path.write_text(text[: text.index('"id": 3')])
        with pytest.raises(ValueError, match="truncated"):
            ingest_file(store, path)
        assert rows(store, "SELECT count(*) FROM score") == [(0,)]
        ingest_file(store, path, partial=True)
        assert rows(store, "SELECT count(*) FROM score") == [(2,)]


@pytest.mark.soak
def test_a_log_of_a_gigabyte_is_ingested_with_little_memory(tmp_path: Path, sqlite_url: str) -> None:
    path, n_right = tmp_path / "big.eval", 0
    noise = os.urandom(A_GIGABYTE // N_BIG + 3000)
    with zipfile.ZipFile(path, "w") as file:
        for n in range(N_BIG):
            file.writestr(f"samples/{n}_epoch_1.json", noise[n % 3000 :])
        result = []
        for n in range(N_BIG):
            right = n % 3 == 0
            n_right += right
            result.append(sample(n, value="C" if right else "I", input=f"Question {n}: {'why ' * 250}"))
        file.writestr("summaries.json", json.dumps(result), zipfile.ZIP_DEFLATED)
        del result
        file.writestr("header.json", json.dumps(header(reported(n_right / N_BIG))), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size > A_GIGABYTE
    # The peak of the program's own memory; that of the process counts what it was started from.
    program = (
        "import sys, tracker.cli\ntry:\n    tracker.cli.main(sys.argv[1:])\nfinally:\n"
        "    print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0])\n"
    )
    command = [sys.executable, "-c", program, "ingest", str(path), "--database", sqlite_url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak = int(re.findall(r"VmHWM:\s+(\d+) kB", done.stdout)[0]) / 1024
    engine = connect(sqlite_url)
    ((n, mean),) = rows(engine, "SELECT count(*), avg(value) FROM score")
    engine.dispose()
    assert (n, mean) == (N_BIG, pytest.approx(n_right / N_BIG))
    assert peak < MAX_MEMORY, f"{peak:.0f} MB"
