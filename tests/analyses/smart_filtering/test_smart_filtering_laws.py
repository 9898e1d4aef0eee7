"""What does not change a filter, and what changes it one way only."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from small_benchmarks import USUAL, SmallBenchmark, complete_benchmark, small

from tracker.database import connect, transaction
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.write.vectors import EncoderName, ingest_vectors
from tracker.ingest.write.writer import store_file
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.recording.finding import Report
from tracker.recording.pipeline import RecordedFinding, run_analysis
from tracker.simulation.files import BENCHMARK, METRIC, RESULT_FILES, VECTORS_FILE, write_files
from tracker.simulation.item_response import Design, simulate

BY_MODELS = ("easy", "contaminated", "suspect-label")
CHANGES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"duplicates": "question"}, ("duplicate",)),
    ({"exclude_task": ("task 1", "task 3")}, ("anomalous",)),
    ({"retain": 0.6}, ("easy",)),
    ({"confidence": 0.5}, BY_MODELS),
    ({"without_confidence": True}, BY_MODELS),
    ({"probability": "likelihoods"}, BY_MODELS),
    ({"n_models": 6}, BY_MODELS),
    ({"n_neighbours": 30}, ("similar",)),
    ({"bandwidth": 0.3}, ("similar",)),
    ({"threshold": 0.02}, ("similar",)),
    ({"groups": "stars"}, ("similar",)),
    ({"largest_group": 0.01}, ("similar",)),
    ({"without_similar": True}, ("similar",)),
    ({"n_subsets": 7, "n_splits": 4, "n_draws": 30}, ()),
]
"""Options, and the steps that they may change."""


def decisions(report: Report) -> dict[str, set[tuple[int, bool]]]:
    """By step, the prompts it flags, and whether they stay in spite of it."""
    assert report.filter is not None
    return {
        name: set(zip(reason.prompt_ids.tolist(), reason.retained.tolist(), strict=True))
        for name, reason in report.filter.reasons.items()
    }


def flags(report: Report) -> dict[str, set[int]]:
    """By step, the prompts it flags."""
    return {name: {prompt for prompt, _ in flagged} for name, flagged in decisions(report).items()}


def groups(report: Report) -> dict[str, set[frozenset[int]]]:
    """By step, its groups of like prompts."""
    assert report.filter is not None
    result = {}
    for name, reason in report.filter.reasons.items():
        numbers = np.full(len(reason.prompt_ids), -1) if reason.groups is None else reason.groups
        result[name] = {
            frozenset(reason.prompt_ids[numbers == number].tolist()) for number in np.unique(numbers[numbers >= 0])
        }
    return result


@pytest.fixture(scope="module")
def complete() -> SmallBenchmark:
    return complete_benchmark()


@pytest.fixture(scope="module")
def usual(complete: SmallBenchmark) -> Report:
    return complete.run(**USUAL)


class TestSeeds:
    def test_the_same_seed_gives_the_same_bytes(self, complete: SmallBenchmark, usual: Report) -> None:
        again = complete.run(**USUAL)
        assert decisions(again) == decisions(usual)
        assert again.finding.metrics == usual.finding.metrics
        for name, values in usual.finding.arrays.items():
            assert again.finding.arrays[name].tobytes() == values.tobytes(), name

    def test_another_seed_changes_only_which_of_a_group_and_which_easy_ones_go(
        self, complete: SmallBenchmark, usual: Report
    ) -> None:
        changed_report = complete.run(**USUAL, seed=1)
        assert flags(changed_report) == flags(usual)
        assert groups(changed_report) == groups(usual)
        changed = {
            name
            for name, made_decisions in decisions(changed_report).items()
            if made_decisions != decisions(usual)[name]
        }
        assert changed == {"duplicate", "easy", "similar"}
        for name, step in usual.finding.steps.items():
            assert changed_report.finding.steps[name].removed.sum() == step.removed.sum()

    @settings(max_examples=15)
    @given(number=st.integers(0, 2**32), seed=st.integers(0, 2**64))
    def test_every_prompt_has_one_decision_and_stays_unless_a_step_removes_it(self, number: int, seed: int) -> None:
        b = small(number, n=60)
        report = b.run(**USUAL | {"n_models": 2}, seed=seed)
        assert report.filter is not None
        assert sorted(report.filter.prompt_ids.tolist()) == sorted(b.prompt_ids.tolist())
        made_decisions = decisions(report)
        assert {stays for _, stays in made_decisions["suspect-label"]} <= {True}
        gone = {prompt for flagged in made_decisions.values() for prompt, stays in flagged if not stays}
        assert gone == set(report.filter.prompt_ids[~report.filter.kept].tolist())


class TestIndependence:
    @pytest.mark.parametrize(("options", "steps"), CHANGES, ids=[next(iter(options)) for options, _ in CHANGES])
    def test_an_option_changes_the_steps_it_is_of_and_no_other(
        self, complete: SmallBenchmark, usual: Report, options: dict[str, Any], steps: tuple[str, ...]
    ) -> None:
        made_decisions = decisions(complete.run(**USUAL | options))
        changed = {name for name, before in decisions(usual).items() if made_decisions[name] != before}
        assert changed <= set(steps)
        assert bool(changed) == bool(steps)

    def test_models_that_do_not_filter_change_no_decision(self, complete: SmallBenchmark) -> None:
        join = complete.but(named_models=("model 0", "model 3", "model 7"))
        scores, blind = complete.scores.copy(), complete.blind
        assert blind is not None
        scores[:, [1, 2]], blind = 1 - scores[:, [1, 2]], np.where(np.arange(9) == 5, 1 - blind, blind)
        changed_report = join.but(scores=scores, blind=blind)
        assert decisions(changed_report.run(**USUAL)) == decisions(join.run(**USUAL))


class TestOrder:
    def test_models_in_another_order_filter_the_same(self, complete: SmallBenchmark, usual: Report) -> None:
        means = sorted(complete.scores.mean(axis=0).tolist())
        assert len(set(means[-4:])) == 4, "of models that are tied the first is taken"
        order = np.random.default_rng(1).permutation(9)
        turned = complete.but(
            models=tuple(complete.models[j] for j in order),
            scores=complete.scores[:, order],
            gold={kind: P[:, order] for kind, P in complete.gold.items()},
            blind=complete.blind[:, order] if complete.blind is not None else None,
            blind_gold={kind: P[:, order] for kind, P in complete.blind_gold.items()},
            codes=complete.codes[:, order],
            answer_probability=complete.answer_probability[:, order],
        )
        report = turned.run(**USUAL)
        assert decisions(report) == decisions(usual)
        assert report.finding.filter_models == usual.finding.filter_models
        for name in ("tau", "tau_without_filter_models", "agreement.share.after", "agreement.kappa.before"):
            assert report.finding.metrics[name] == pytest.approx(usual.finding.metrics[name], abs=1e-12)

    @pytest.mark.parametrize("seed", range(4))
    def test_prompts_in_another_order_are_flagged_and_grouped_the_same(self, seed: int) -> None:
        b = small(seed, n=90)
        order = np.random.default_rng(seed).permutation(90)
        assert b.blind is not None
        assert b.vectors is not None
        turned = b.but(
            tasks=[b.tasks[i] for i in order],
            texts=[b.texts[i] for i in order],
            choices=[b.choices[i] for i in order],
            scores=b.scores[order],
            gold={kind: P[order] for kind, P in b.gold.items()},
            blind=b.blind[order],
            blind_gold={kind: P[order] for kind, P in b.blind_gold.items()},
            codes=b.codes[order],
            answer_probability=b.answer_probability[order],
            vectors=b.vectors[order],
            prompt_ids=b.prompt_ids[order],
        )
        first, second = (benchmark.run(**USUAL | {"n_models": 2}) for benchmark in (b, turned))
        assert flags(second) == flags(first)
        assert groups(second) == groups(first)
        for name, step in first.finding.steps.items():
            assert second.finding.steps[name].removed.sum() == step.removed.sum()
        threshold = first.finding.metrics.get("similar.threshold")
        assert second.finding.metrics.get("similar.threshold") == pytest.approx(threshold, rel=1e-9)


class TestMonotone:
    """More is asked, less is flagged."""

    def test_a_higher_confidence_flags_no_prompt_that_a_lower_does_not(self, complete: SmallBenchmark) -> None:
        result = [flags(complete.run(**USUAL, confidence=c)) for c in (0.0, 0.3, 0.6, 0.8, 0.9, 0.999)]
        for name in BY_MODELS:
            sizes = [len(benchmark[name]) for benchmark in result]
            assert all(more[name] >= less[name] for more, less in itertools.pairwise(result))
            assert sizes[0] > sizes[-1], name

    def test_a_further_filter_model_flags_no_prompt_that_was_not_flagged(self, complete: SmallBenchmark) -> None:
        names = complete.models
        result = [flags(complete.but(named_models=names[:m]).run(**USUAL)) for m in range(1, 10)]
        for name in BY_MODELS:
            assert all(more[name] >= less[name] for more, less in itertools.pairwise(result))

    def test_right_and_wrong_alone_flag_whatever_confidence_flags(
        self, complete: SmallBenchmark, usual: Report
    ) -> None:
        alone = flags(complete.run(**USUAL, without_confidence=True))
        assert all(alone[name] > flags(usual)[name] for name in BY_MODELS)

    def test_a_larger_threshold_parts_no_group(self, complete: SmallBenchmark) -> None:
        all_options = USUAL | {"largest_group": 1.0}
        result = [
            groups(complete.run(**all_options | {"threshold": t}))["similar"] for t in (0.005, 0.02, 0.1, 0.4, 1.2)
        ]
        for small_ones, large_ones in itertools.pairwise(result):
            assert all(any(group <= larger for larger in large_ones) for group in small_ones)
        assert [len(set().union(*benchmark)) for benchmark in result] == sorted(
            len(set().union(*benchmark)) for benchmark in result
        )

    def test_of_a_larger_share_that_is_retained_a_smaller_one_is_part(self, complete: SmallBenchmark) -> None:
        kept = [decisions(complete.run(**USUAL, retain=share))["easy"] for share in (0.0, 0.1, 0.35, 0.7, 1.0)]
        stays = [{prompt for prompt, is_retained in benchmark if is_retained} for benchmark in kept]
        assert all(less <= more for less, more in itertools.pairwise(stays))
        assert [len(stay) for stay in stays] == [round(share * len(kept[0])) for share in (0.0, 0.1, 0.35, 0.7, 1.0)]


def filled(url: str, folder: Path) -> sa.Engine:
    """A store with a small planted benchmark, taken in from files."""
    simulation = simulate(Design(n_prompts=240, n_easy=30, n_leaked=12, n_groups=8), seed=0)
    write_files(simulation, folder)
    engine = connect(url)
    for file in RESULT_FILES:
        reading = parse_file(folder / file.name, file.options)
        with transaction(engine, exclusive=True) as session:
            store_file(session, reading, file.options)
    with transaction(engine, exclusive=True) as session:
        encoder = EncoderName(name=VECTORS_FILE.encoder, revision="", template="question+choices")
        vectors = read_vectors(folder / VECTORS_FILE.name)
        ingest_vectors(session, vectors, find_benchmark(session, BENCHMARK).id, BENCHMARK, encoder)
    return engine


def recorded(engine: sa.Engine, workers: int) -> tuple[RecordedFinding, dict[str, list[Any]]]:
    """A finding and what the store holds of it, by names instead of keys."""
    options = {"n_splits": 5, "n_subsets": 5, "largest_group": 0.2}
    finding = run_analysis(
        engine, "smart-filtering", Selection(benchmark=BENCHMARK, metric=METRIC), options, workers=workers
    )
    join = "JOIN prompt_alias p ON p.prompt_id = d.prompt_id WHERE finding_id = :key"
    queries = {
        "decisions": f"SELECT p.key, d.kept FROM filter_decision d {join}",
        "reasons": f"SELECT p.key, step, retained, cluster FROM filter_reason d {join}",
        "rankings": "SELECT scheme, name, rank, score FROM ranking JOIN model ON model.id = model_id "
        "WHERE finding_id = :key",
        "numbers": "SELECT name, value, reason FROM finding_metric WHERE finding_id = :key",
        "artifacts": "SELECT name, content FROM finding_artifact WHERE finding_id = :key",
    }
    with transaction(engine, write=False) as session:
        result = {
            name: sorted(map(tuple, session.execute(sa.text(sql), {"key": finding.finding_id})), key=repr)
            for name, sql in queries.items()
        }
    result["artifacts"] = [(name, bytes(content)) for name, content in result["artifacts"]]
    return finding, result


class TestStores:
    def test_any_number_of_workers_and_both_engines_decide_the_same(
        self, sqlite_url: str, postgres_url: str, tmp_path: Path
    ) -> None:
        engines = {"sqlite": filled(sqlite_url, tmp_path), "postgresql": filled(postgres_url, tmp_path)}
        finding, first = recorded(engines["sqlite"], workers=1)
        report = finding.report
        assert report.filter is not None
        assert len(first["decisions"]) == 240
        assert len({key for key, _ in first["decisions"]}) == 240
        gone = {key for key, _, retained, _ in first["reasons"] if not retained}
        assert {key for key, kept in first["decisions"] if not kept} == gone
        assert gone
        assert not [key for key, step, retained, _ in first["reasons"] if step == "suspect-label" and not retained]
        assert recorded(engines["postgresql"], workers=2)[1] == first
        for engine in engines.values():
            engine.dispose()
