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
HARNESS_TASK = """\
task: capitals
dataset_path: json
dataset_kwargs: {data_files: {test: test.jsonl, train: train.jsonl}}
test_split: test
fewshot_split: train
num_fewshot: 2
output_type: multiple_choice
doc_to_text: "Question: What is the capital of {{country}}?\\nAnswer:"
doc_to_choice: options
doc_to_target: label
metric_list: [{metric: acc}, {metric: acc_norm}]
"""


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


TABLES = {
    "paper.csv": """
,Params,ARC ↑,MMLU ↑,HellaSwag ↑,Average ⬆️,License
acorn-7b,7B,61.3%,52.1%,78.0%,63.8%,apache-2.0
borealis-2,34B,68.8%,70.2%,84.5%,74.5%,custom
🥇 folio-72b,72B,70.1%,74.9%,86.2%,77.1%,custom
""",
    "two_readings.csv": """
whatever,x,y
foo,0.71,0.55
bar,0.61,0.65
""",
    "long.csv": """
system,scenario,item,outcome,seconds
acorn-7b,logic,q1,1,2.1
acorn-7b,units,q2,0,1.9
Acorn-7B ,logic,q3,1,2.4
borealis-2,logic,q1,1,3.0
borealis-2,units,q2,1,3.2
borealis-2,logic,q3,0,2.8
""",
    "loss.csv": """
model,news ↓ [ sort ],code ↓ [ sort ]
acorn-7b,-0.42,-0.61
borealis-2,-0.31,-0.55
""",
}


def write_tables(folder: Path) -> None:
    """The tables that `docs/how-to/leaderboards.md` imports, and results of a harness whose mean was changed."""
    for name, text in TABLES.items():
        (folder / name).write_text(text.lstrip("\n"), encoding="utf-8")
    run = HarnessRun("org/model-7b", "saltmarsh/heron-3", 12)
    write_run(simulate(seed=0), run, folder / "results", {task: range(20) for task in ("logic", "tables")})
    [results] = (folder / "results").glob("results_*.json")
    content = json.loads(results.read_text())
    content["results"]["tables"]["acc,none"] = 0.95  # of its samples 0.8
    results.write_text(json.dumps(content))


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
    faulty = [["q1", "What is 2 + 2?", '["3", "4", "5"]', "E"], ["q2", "Is 7 prime?", '["yes", "no", "yes"]', "A"]]
    csv_file(folder / "faulty.csv", [["prompt_id", "question", "choices", "answer"], *faulty])
    csv_file(folder / "quiz.csv", [["question", "A", "B", "C", "D", "key", "topic"], *rows])
    write_harness_task(folder / "tasks")


def write_harness_task(folder: Path) -> None:
    """A task file of lm-evaluation-harness and its documents."""
    folder.mkdir()
    (folder / "capitals.yaml").write_text(HARNESS_TASK)
    capitals = ["Rome", "Oslo", "Lima", "Cairo", "Quito", "Tunis", "Riga", "Sofia"]
    countries = ["Italy", "Norway", "Peru", "Egypt", "Ecuador", "Tunisia", "Latvia", "Bulgaria"]
    rows = [
        {"country": country, "options": [capital, capitals[at - 1]][:: 1 - 2 * (at % 2)], "label": at % 2}
        for at, (country, capital) in enumerate(zip(countries, capitals, strict=True))
    ]
    json_lines(folder / "test.jsonl", rows[:5])
    json_lines(folder / "train.jsonl", rows[5:])


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
