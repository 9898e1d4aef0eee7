"""Folders in which documentation pages run: small files, made here or taken from the folder of real data."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from doc_programs import run_line, working_folder
from harness_output import HarnessRun, write_run
from page_files import write_data_sets, write_result_files, write_served_benchmark, write_tables
from page_models import write_encoders, write_quiz_models
from two_harnesses import write_two_harnesses

from tracker.simulation.files import FILES, RESULT_FILES, write_files
from tracker.simulation.item_response import simulate

Build = Callable[[Path, Path], None]

RESULTS = (
    HarnessRun("borealis-2-large", "northlight/borealis-2-large", 9),
    HarnessRun("folio-72b", "quillworks/folio-72b", 9),
    HarnessRun("checkpoint-10000", "saltmarsh/heron-3", 10),
    HarnessRun("checkpoint-20000", "saltmarsh/heron-3", 12, gained=75, lost=40),
    HarnessRun("acorn-7b", "oakhollow/acorn-7b", 12),
)
NIGHTLY = (
    HarnessRun("assistant", "paperlantern/kite-20b", 14),
    HarnessRun("assistant", "paperlantern/kite-20b", 15, gained=12, lost=10),
    HarnessRun("assistant", "paperlantern/kite-20b", 16, gained=15, lost=70),
)


def _empty(folder: Path, shared: Path) -> None:
    """Nothing."""


def _simulated(folder: Path, shared: Path) -> None:
    """The files of `suffrage demo`."""
    write_files(simulate(seed=0), folder)


def _demo(folder: Path, shared: Path) -> None:
    """A store with the simulated benchmark of `suffrage demo`."""
    _simulated(folder, shared)
    with working_folder(folder):
        for file in FILES:
            run_line(file.command(Path()) + (" --no-mlflow" if file in RESULT_FILES else ""))
            Path(file.name).unlink()


def _harness(folder: Path, shared: Path) -> None:
    """`results/` and `nightly/`: output of lm-evaluation-harness on the six tasks of the simulated benchmark."""
    simulation = simulate(seed=0)
    for name, runs in (("results", RESULTS), ("nightly", NIGHTLY)):
        for run in runs:
            write_run(simulation, run, folder / name / run.model)


def _history(folder: Path, shared: Path) -> None:
    """The same, and `january.db`, which imported each night's results in that night."""
    _harness(folder, shared)
    with working_folder(folder):
        run_line("suffrage ingest nightly/ --no-mlflow --database sqlite:///january.db")
        with closing(sqlite3.connect("january.db")) as store:
            store.execute("UPDATE run SET ingested = started")
            store.commit()


def _small(write: Callable[[Path], None]) -> Build:
    """Files that need no real data."""
    return lambda folder, shared: write(folder)


def _real(*names: str) -> Build:
    """Files of the folder of real data, as links."""

    def build(folder: Path, shared: Path) -> None:
        for name in names:
            for path in sorted((shared / "data").glob(name)):
                (folder / path.name).symlink_to(path)

    return build


ORGANIZATIONS = {
    "Meta": ("Llama", "Meta-Llama"),
    "Alibaba": ("Qwen",),
    "Mistral AI": ("Mistral", "Mixtral", "mathstral"),
    "01.AI": ("Yi",),
    "Google": ("gemini", "gemma"),
    "AI21": ("jamba",),
    "Cohere": ("c4ai",),
    "Microsoft": ("Phi",),
    "DeepSeek": ("DeepSeek",),
}
"""Who made the models of MMLU-Pro, by the beginning of their names."""


def _mmlu_pro(folder: Path, shared: Path) -> None:
    """The published results of MMLU-Pro, a part of them, and `models.csv`: who made the models."""
    _real("mmlu_pro/*")(folder, shared)
    with gzip.open(folder / "scores_wide.csv.gz", "rt") as file:
        models = file.readline().strip().split(",")[1:]
    makers = {model: name for model in models for name, starts in ORGANIZATIONS.items() if model.startswith(starts)}
    lines = ["model,organization", *(f"{model},{name}" for model, name in makers.items())]
    (folder / "models.csv").write_text("\n".join(lines) + "\n")


FOLDERS: Mapping[str, Build] = MappingProxyType(
    {
        "empty": _empty,
        "simulated": _simulated,
        "demo": _demo,
        "harness": _harness,
        "two-harnesses": _small(write_two_harnesses),
        "history": _history,
        "files": _small(write_result_files),
        "tables": _small(write_tables),
        "datasets": _small(write_data_sets),
        "server": _small(write_served_benchmark),
        "quiz": _small(write_quiz_models),
        "encoders": _small(write_encoders),
        "mmlu-pro": _mmlu_pro,
        "alpaca-eval": _real("alpaca_eval/*"),
        "leaderboards": _real("leaderboards/*"),
    }
)
"""What builds the folder that a page names in `<!-- run in: NAME -->`."""

REAL = frozenset({"mmlu-pro", "alpaca-eval", "leaderboards"})
"""Folders of real data; pages that use them are skipped where it is missing."""

MODELS = frozenset({"quiz", "encoders"})
"""Folders with models; pages that use them are skipped where the extra `models` is not installed."""
