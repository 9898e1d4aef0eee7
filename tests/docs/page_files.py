"""Small files for pages that import results and data sets."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from doc_programs import ROOT, run_line, working_folder
from harness_output import HarnessRun, write_run

from tracker.simulation.item_response import simulate

sys.path += [str(ROOT / "tests/tracker" / name) for name in ("evaluating", "ingest/published")]

from memorised_prompts import write_prompts
from published_files import anli_lines, csv_file, hellaswag, json_lines, mmlu_row

N_PROMPTS, N_MODELS = 12, 3


def write_result_files(folder: Path) -> None:
    """The files that `docs/reference/formats.md` imports, and a store that an earlier version wrote."""
    names, models = [f"q{n}" for n in range(N_PROMPTS)], [f"org/model-{letter}" for letter in "ABC"[:N_MODELS]]
    (folder / "results").mkdir()
    prompts = [[name, "law" if n % 2 else "physics", f"Question {n}?", "ABCD"[n % 4]] for n, name in enumerate(names)]
    csv_file(folder / "results/prompts.csv", [["prompt_id", "task", "question", "answer"], *prompts])
    scores = [[name, *(int((n + m) % (m + 2) > 0) for m in range(N_MODELS))] for n, name in enumerate(names)]
    csv_file(folder / "results/scores.csv", [["prompt_id", *models], *scores])
    answers = {
        model: ["ABCD"[(n + (n % (m + 2) == 0)) % 4] for n in range(N_PROMPTS)] for m, model in enumerate(models)
    }
    pq.write_table(pa.table({"prompt_id": names, **answers}), folder / "predictions.parquet")
    columns = zip(*(row[1:] for row in scores), strict=True)
    rows = [[model, *column] for model, column in zip(models, columns, strict=True)]
    csv_file(folder / "scores_by_model.csv", [["model", *names], *rows])
    csv_file(
        folder / "leaderboard.csv", [["model", "ARC", "MMLU"], ["org/model-A", 71.1, 77.5], ["org/model-B", 64, 70]]
    )
    merged = [[f"org/model-{n}", n * 7 % 5, n * 3 % 7, n * 7 % 5, n * 3 % 7, n * n % 11] for n in range(1, 9)]
    csv_file(folder / "merged.csv", [["model", "ARC", "MMLU", "arc_copy", "mmlu_copy", "GSM8K"], *merged])
    _write_harness_files(folder)


def _write_harness_files(folder: Path) -> None:
    simulation = simulate(seed=0)
    run = HarnessRun("org/model-7b", "saltmarsh/heron-3", 12)
    write_run(simulation, run, folder / "lm_eval_output", {task: range(5) for task in ("logic", "tables", "units")})
    [log] = (folder / "lm_eval_output").glob("samples_logic_*.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    (folder / "samples_exam.jsonl").write_text("".join(lines[:-1]) + lines[-1][:100])
    with working_folder(folder):
        run_line("suffrage ingest lm_eval_output/ --benchmark mmlu --no-mlflow --database sqlite:///earlier.db")
        with closing(sqlite3.connect("earlier.db")) as store:
            store.execute("UPDATE prompt SET details = NULL")
            store.commit()


def write_data_sets(folder: Path) -> None:
    """The data sets that `docs/how-to/datasets.md` imports, as they are published."""
    for round_ in ("R1", "R2", "R3"):
        for split in ("train", "dev", "test"):
            json_lines(folder / f"anli_v1.0/{round_}/{split}.jsonl", anli_lines(f"{round_}-{split}"))
    json_lines(folder / "hellaswag_val.jsonl", hellaswag("val", 40))
    for split in ("dev", "test"):
        for number, subject in enumerate(("anatomy", "virology")):
            csv_file(folder / f"data/{split}/{subject}_{split}.csv", [mmlu_row(20 * number + n) for n in range(6)])
    rows = [
        [f"Question {n}?", "one", "two", "three", "four", "ABCD"[n % 4], "easy" if n < 5 else "hard"] for n in range(9)
    ]
    csv_file(folder / "quiz.csv", [["question", "A", "B", "C", "D", "key", "topic"], *rows])


def write_quiz(folder: Path) -> None:
    """A table of prompts with options."""
    write_prompts(folder / "questions.csv")


def write_served_benchmark(folder: Path) -> None:
    """A store with a benchmark `mmlu` of prompts without scores."""
    with (folder / "mmlu.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt_id", "task", "question", "choices", "gold_answer"])
        options = json.dumps(["one", "two", "six"])
        writer.writerows([f"q{n}", "anatomy", f"Number {n}?", options, "ABC"[n % 3]] for n in range(N_PROMPTS))
    with working_folder(folder):
        run_line("suffrage ingest mmlu.csv --benchmark mmlu --no-mlflow")
        Path("mmlu.csv").unlink()
