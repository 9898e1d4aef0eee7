"""Summaries of every analysis on the demo's benchmark and on real data: short, complete, and in plain terms."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from analysis_options import CHEAP, SCORES_ONLY
from matplotlib.text import Text
from source_tree import glossary_rows

from tracker.database import connect, transaction
from tracker.errors import SuffrageError
from tracker.figures.canvas import PAGE_WIDTH, SMALLEST_TEXT
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.write.vectors import EncoderName, add_vectors, find_or_add_encoder, ingest_vectors
from tracker.ingest.write.writer import store_file
from tracker.queries.findings.summary import MAX_CAVEATS, MAX_EVIDENCE, MAX_HEADLINE_WORDS, Summary
from tracker.queries.ranking.leaderboard import load_leaderboard
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording import pipeline
from tracker.recording.artifacts import build_artifacts
from tracker.recording.declaration import load_declaration
from tracker.recording.finding import Report
from tracker.recording.pipeline import compute_report, run_analysis
from tracker.recording.registry import discover_analyses, discover_tests
from tracker.simulation.files import BENCHMARK, RESULT_FILES, VECTORS_FILE, write_files
from tracker.simulation.item_response import simulate
from tracker.simulation.truth_comparison import select_scores

MAX_WORDS = 30
ANALYSES = tuple(discover_analyses())
OPTIONAL_TESTS = ("equivalence", "pairs of models")
"""Tests that an option adds."""
OF_TASKS = ("sensitivity-sweep", "social-choice", "task-subsets", "tradeoff", "voting-rules")
"""Analyses of task scores, which is all that a leaderboard has."""
LED_BY_GEMINI = (
    "prompt-weighting",
    "rank-intervals",
    "sensitivity-sweep",
    "social-choice",
    "task-subsets",
    "voting-rules",
    "weight-robustness",
)
"""Analyses that rank the models of MMLU-Pro by rules that agree on the first."""
MANY_PROMPTS: Mapping[str, object] = SCORES_ONLY | {
    "n_permutations": 2,
    "n_orders": 2,
    "max_clusters": 3,
    "response": "gaussian",
}
"""The same for thousands of prompts: the numbers are rough, the text is as long as with more resamples."""
NO_EXACT_SEARCH: Mapping[str, object] = CHEAP | {"time_limit": 0.0}
"""The same for many models or tasks; a search that a time limit ends would depend on the load."""

TERMS = [term.strip("`") for terms, *_ in glossary_rows("Invented terms in texts") for term in terms.split(", ")]
INVENTED_TERM = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, TERMS))})(?![\w-])", re.I)
UNDEFINED = re.compile(r"(?<![\w-])(?:nan|None|inf)(?![\w-])")
CODE_SPAN = re.compile(r"`[^`]+`")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")


def list_faults(summary: Summary, warnings: tuple[str, ...]) -> list[str]:
    """List what breaks the rules of summaries."""
    faults = []
    if len(summary.headline.split()) > MAX_HEADLINE_WORDS:
        faults.append(f"headline of {len(summary.headline.split())} words: {summary.headline}")
    if len(SENTENCE_END.split(summary.headline)) != 1:
        faults.append(f"headline of several sentences: {summary.headline}")
    for name, items, most in (("evidence", summary.evidence, MAX_EVIDENCE), ("caveats", summary.caveats, MAX_CAVEATS)):
        if len(items) > most:
            faults.append(f"{len(items)} items of {name}")
    for text in (summary.headline, *summary.evidence, *summary.caveats, *filter(None, [summary.looks]), *warnings):
        faults += list_text_faults(text)
    return faults


def list_text_faults(text: str) -> list[str]:
    """List what is wrong with one text of a summary."""
    faults = [f"invented term {term!r}: {text}" for term in INVENTED_TERM.findall(CODE_SPAN.sub("x", text))]
    long = [sentence for sentence in SENTENCE_END.split(text) if len(sentence.split()) > MAX_WORDS]
    faults += [f"{len(sentence.split())} words: {sentence}" for sentence in long]
    if not text.strip():
        faults.append("empty text")
    elif text != text.strip() or "  " in text or not text.endswith((".", "`", "!")):
        faults.append(f"badly spaced, or without a full stop: {text!r}")
    faults += [f"undefined number {number!r}: {text}" for number in UNDEFINED.findall(CODE_SPAN.sub("x", text))]
    return faults


def ingest(engine: sa.Engine, path: Path, options: ReadOptions) -> None:
    reading = parse_file(path, options)
    with transaction(engine, exclusive=True) as session:
        store_file(session, reading, options)


def write_second_run(scores: Path, path: Path) -> Path:
    """Write a second run of the first model of a wide table, in which some scores change."""
    run = pd.read_csv(scores, index_col=0).iloc[:, [1]]
    run.iloc[::15] = 1
    run.to_csv(path)
    return path


def store_random_vectors(engine: sa.Engine) -> None:
    with transaction(engine, exclusive=True) as session:
        ids = session.scalars(sa.select(tables.prompt.c.id).order_by(tables.prompt.c.id)).all()
        key = find_or_add_encoder(session, EncoderName(name="random", revision="", template="question"), 8)
        E = np.random.default_rng(0).normal(size=(len(ids), 8)).astype(np.float32)
        add_vectors(session, key, np.array(ids), E)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    path = tmp_path_factory.mktemp("summaries")
    for name in ("simulated", "mmlu_pro", "leaderboards"):
        shutil.copy(sqlite_template, path / f"{name}.db")
    return path


@pytest.fixture(scope="module")
def simulated(folder: Path) -> Iterator[sa.Engine]:
    """A store with the benchmark of the demo, its vectors, and the findings that other analyses need."""
    engine = connect(f"sqlite:///{folder / 'simulated.db'}")
    write_files(simulate(seed=0), folder)
    for file in RESULT_FILES:
        ingest(engine, folder / file.name, file.options)
    with transaction(engine, exclusive=True) as session:
        by = EncoderName(name=VECTORS_FILE.encoder, revision="", template="question+choices")
        vectors = read_vectors(folder / VECTORS_FILE.name)
        ingest_vectors(session, vectors, find_benchmark(session, BENCHMARK).id, BENCHMARK, by)
    record_needed(engine, [select_scores()], CHEAP)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def mmlu_pro(folder: Path, shared: Path) -> Iterator[sa.Engine]:
    """A store with MMLU-Pro, random vectors, and the findings that other analyses need."""
    engine = connect(f"sqlite:///{folder / 'mmlu_pro.db'}")
    scores = shared / "data/mmlu_pro/scores_wide.csv.gz"
    for path in (scores.with_name("prompts.parquet"), scores, write_second_run(scores, folder / "second_run.csv")):
        ingest(engine, path, ReadOptions(benchmark="mmlu_pro", metric="accuracy"))
    store_random_vectors(engine)
    record_needed(engine, [Selection(benchmark="mmlu_pro")], MANY_PROMPTS)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def leaderboards(folder: Path, shared: Path) -> Iterator[sa.Engine]:
    """A store with two leaderboards, one complete and one with missing scores."""
    engine = connect(f"sqlite:///{folder / 'leaderboards.db'}")
    for name in ("cardinal_vtab", "ordinal_helm_accuracy"):
        ingest(engine, shared / f"data/leaderboards/{name}.csv", ReadOptions(benchmark=name))
    record_needed(engine, [Selection(benchmark="cardinal_vtab")], NO_EXACT_SEARCH)
    yield engine
    engine.dispose()


def record_needed(engine: sa.Engine, selections: list[Selection], options: Mapping[str, object]) -> None:
    """Record a filter, where prompts have scores, and social choice: some analyses are of these findings."""
    with pytest.MonkeyPatch.context() as patch:  # figures take most of the time and no summary needs them
        patch.setattr(pipeline, "build_artifacts", lambda report: build_artifacts(replace(report, figures={})))
        for selection in selections:
            if selection.benchmark in (BENCHMARK, "mmlu_pro"):
                run_analysis(engine, "smart-filtering", selection, choose_options("smart-filtering", options))
            run_analysis(engine, "social-choice", selection, choose_options("social-choice", options))


def choose_options(name: str, options: Mapping[str, object]) -> dict[str, Any]:
    """Return those of some options that an analysis has."""
    return {
        parameter.name: options[parameter.name]
        for parameter in load_declaration(name).parameters
        if parameter.name in options
    }


def compute(engine: sa.Engine, name: str, selection: Selection, options: Mapping[str, object]) -> Report:
    """Compute a report as the pipeline does; warnings fill the free places for caveats."""
    chosen = selection if load_declaration(name).is_of_one_benchmark else None
    values = choose_options(name, options)
    if name == "comparison":
        with transaction(engine, write=False) as session:
            values |= dict(zip(("model_a", "model_b"), session.scalars(sa.select(tables.model.c.name)), strict=False))
    return compute_report(engine, name, chosen, values)


def check(report: Report) -> None:
    print(f"\n{report.summary.format_markdown()}\n  further: {' | '.join(report.warnings)}")
    assert list_faults(report.summary, tuple(report.warnings)) == []
    assert report.summary.evidence


def check_figures(report: Report) -> None:
    """Check that figures fit on a page and that their texts are legible there."""
    for name, draw in report.figures.items():
        figure = draw()
        assert figure.get_figwidth() <= PAGE_WIDTH, name
        assert figure.get_suptitle(), name
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]  # type: ignore
        assert min(text.get_fontsize() for text in texts) >= SMALLEST_TEXT, name  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ANALYSES)
def test_every_summary_of_the_demo_follows_the_rules(simulated: sa.Engine, name: str) -> None:
    report = compute(simulated, name, select_scores(), CHEAP)
    check(report)
    tests, metrics = discover_tests().get(name, ()), report.finding.metrics
    has_pvalues = any(re.search(r"(^|\.)(pvalue|holm)", metric) for metric in metrics)
    assert bool(tests) == has_pvalues == bool(report.summary.looks)
    for test in tests:
        assert test.name in OPTIONAL_TESTS or {test.n_tests or test.pvalues[0], *test.pvalues} & set(metrics)


@pytest.mark.parametrize("name", ANALYSES)
def test_every_summary_of_mmlu_pro_follows_the_rules(mmlu_pro: sa.Engine, name: str) -> None:
    report = compute(mmlu_pro, name, Selection(benchmark="mmlu_pro"), MANY_PROMPTS)
    check(report)
    check_figures(report)
    if name in LED_BY_GEMINI:
        assert report.leaders == ("gemini-1.5-pro-002",)
        assert "leaderboard" not in report.summary.headline
        assert sum("DeepSeek-Coder-V2 (86.0%)" in text for text in (*report.summary.caveats, *report.warnings)) == 1


def test_the_leaderboard_of_mmlu_pro_has_the_leader_of_the_analyses(mmlu_pro: sa.Engine) -> None:
    with transaction(mmlu_pro, write=False) as session:
        board = load_leaderboard(session, Selection(benchmark="mmlu_pro"), n_resamples=0)
    assert board.leaders == ("gemini-1.5-pro-002",)
    assert [row.model for row in board.rows if row.excluded] == ["DeepSeek-Coder-V2"]
    first = board.rows[0]
    assert (first.worst_mean, first.best_mean) == pytest.approx((8427 / 12032, 8439 / 12032))


@pytest.mark.parametrize("benchmark", ["cardinal_vtab", "ordinal_helm_accuracy"])
@pytest.mark.parametrize("name", OF_TASKS)
def test_every_summary_of_a_leaderboard_follows_the_rules(leaderboards: sa.Engine, name: str, benchmark: str) -> None:
    report = compute(leaderboards, name, Selection(benchmark=benchmark), NO_EXACT_SEARCH)
    check(report)
    check_figures(report)


@pytest.mark.parametrize("name", [name for name in ANALYSES if name not in OF_TASKS])
def test_analyses_of_prompts_reject_a_leaderboard_in_short_sentences(leaderboards: sa.Engine, name: str) -> None:
    with pytest.raises(SuffrageError) as caught:
        compute(leaderboards, name, Selection(benchmark="cardinal_vtab"), CHEAP)
    assert str(caught.value)


class TestTheChecks:
    """They find what is wrong."""

    def test_a_good_summary_has_no_faults(self) -> None:
        assert list_faults(Summary("A is first.", ("Data: 3 models.",), ("Few prompts.",)), ("Use `None`.",)) == []

    @pytest.mark.parametrize(
        ("summary", "fault"),
        [
            (Summary("word " * 30 + "end."), "headline of 31 words"),
            (Summary("A is first. B is second."), "headline of several sentences"),
            (Summary("A is first.", tuple(f"Item {i}." for i in range(6))), "6 items of evidence"),
            (Summary("A is first.", (), tuple(f"Item {i}." for i in range(4))), "4 items of caveats"),
            (Summary("A is first.", ("word " * 30 + "end.",)), "31 words"),
            (Summary("A is first.", ("The ballot is open.",)), "invented term 'ballot'"),
            (Summary("A is first.", ("Tau is nan.",)), "undefined number 'nan'"),
            (Summary("A is first.", ("",)), "empty text"),
            (Summary("A is  first."), "badly spaced"),
            (Summary("A is first"), "without a full stop"),
        ],
    )
    def test_faults_are_found(self, summary: Summary, fault: str) -> None:
        assert any(fault in reported for reported in list_faults(summary, ()))

    def test_faults_of_warnings_are_found(self) -> None:
        assert list_faults(Summary("A is first."), ("The value is None.",))
