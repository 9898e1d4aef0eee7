"""Filters of prompts: how they are loaded, what they leave of the data, what is said of them, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from filled_stores import add_filter, add_scores, add_task_scores, add_weights
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tracker import schema
from tracker.database import connect, transaction
from tracker.errors import NotFoundError, SelectionError
from tracker.queries.filtering.filter_warnings import list_filter_warnings
from tracker.queries.filtering.prompt_filter import PromptFilter, ReasonPrompts
from tracker.queries.performance import load_performance_matrix
from tracker.queries.prompts import load_prompts
from tracker.queries.ranking.leaderboard import Leaderboard, load_leaderboard
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.queries.task_matrix import load_task_matrix

NAN = float("nan")
N, K = 12, 4
Q = (np.random.default_rng(1).random((N, K)) < np.array([0.3, 0.5, 0.7, 0.9])).astype(float)
TASKS = ["law", "math", "art"] * (N // 3)
KEPT = np.arange(N) % 5 != 2
MAKING = "suffrage analyze smart-filtering b"


def load(store: sa.Engine, key: int | None = None, benchmark: str = "b") -> PromptFilter:
    with transaction(store, write=False) as session:
        return PromptFilter.load(session, Selection(benchmark=benchmark, filter=key))


def board(store: sa.Engine, **choices: object) -> Leaderboard:
    with transaction(store, write=False) as session:
        return load_leaderboard(session, Selection(benchmark="b", **choices))


def warnings(store: sa.Engine, key: int, **choices: object) -> list[str]:
    with transaction(store, write=False) as session:
        selection = Selection(benchmark="b", filter=key, **choices)
        return list(list_filter_warnings(session, find_benchmark(session, "b"), selection))


def call(store: sa.Engine, names: dict[int, str], task: str, namespace: str = "") -> None:
    """Give prompts of a task names, as files do."""
    with transaction(store) as session:
        key = session.scalar(sa.select(tables.task.c.id).where(tables.task.c.name == task))
        rows = [{"task_id": key, "namespace": namespace, "key": name, "prompt_id": p} for p, name in names.items()]
        session.execute(sa.insert(tables.prompt_alias), rows)


def grow(store: sa.Engine, n: int, task: str = "law") -> list[int]:
    """Prompts that the benchmark gets later, each with a score by every model; their keys."""
    before = {key for (key,) in store_keys(store)}
    later = np.vstack([np.full((N, K), NAN), np.ones((n, K))])
    add_scores(store, later, tasks=[*TASKS, *[task] * n])
    return sorted({key for (key,) in store_keys(store)} - before)


def store_keys(store: sa.Engine) -> list[sa.Row]:
    with transaction(store, write=False) as session:
        return list(session.execute(sa.select(tables.prompt.c.id).order_by(tables.prompt.c.id)))


@pytest.fixture
def scored(store: sa.Engine) -> sa.Engine:
    """Twelve prompts in three tasks by four models, on each engine in turn."""
    add_scores(store, Q, tasks=TASKS)
    return store


@pytest.fixture
def small(sqlite_store: sa.Engine) -> sa.Engine:
    """The same on SQLite only."""
    add_scores(sqlite_store, Q, tasks=TASKS)
    return sqlite_store


@pytest.fixture
def only_kept(sqlite_template, tmp_path) -> Iterator[sa.Engine]:
    """A store that never held other prompts than those kept."""
    import shutil

    path = tmp_path / "kept.db"
    shutil.copy(sqlite_template, path)
    engine = connect(f"sqlite:///{path}")
    add_scores(engine, Q[KEPT], tasks=[task for task, kept in zip(TASKS, KEPT, strict=True) if kept])
    yield engine
    engine.dispose()


class TestLoading:
    def test_decisions_reasons_and_models_come_as_they_were_stored(self, scored: sa.Engine) -> None:
        reasons = {
            "similar": [(9, True, 0), (2, False, 0), (7, False, 3)],
            "easy": [(2, False, None), (11, True, None)],
        }
        key = add_filter(scored, KEPT.tolist(), reasons=reasons, models=["m3", "m1"])
        result = load(scored, key)
        ids = np.array([key for (key,) in store_keys(scored)])
        assert (result.finding_id, result.made_by, result.benchmark) == (key, "smart-filtering", "b")
        assert (result.models, result.parameters, result.stale) == (("m3", "m1"), {"confidence": 0.8}, "")
        assert result.prompt_ids.tolist() == ids.tolist()
        assert result.kept.tolist() == KEPT.tolist()
        assert (result.prompt_ids.dtype, result.kept.dtype, result.n_kept) == (np.int64, np.bool_, KEPT.sum())
        assert list(result.reasons) == ["easy", "similar"]
        easy, similar = result.reasons["easy"], result.reasons["similar"]
        assert (easy.prompt_ids.tolist(), easy.retained.tolist()) == (ids[[2, 11]].tolist(), [False, True])
        assert easy.groups.tolist() == [-1, -1]
        assert similar.prompt_ids.tolist() == ids[[2, 7, 9]].tolist()
        assert (similar.retained.tolist(), similar.groups.tolist()) == ([False, False, True], [0, 3, 0])
        assert (similar.prompt_ids.dtype, similar.retained.dtype, similar.groups.dtype) == (
            np.int64,
            np.bool_,
            np.int64,
        )
        requested = ids[[9, 2, 5]]
        assert result.flagged("similar", requested).tolist() == [True, True, False]
        assert result.removed("similar", requested).tolist() == [False, True, False]
        assert not result.flagged("contaminated", requested).any()
        assert not result.removed("contaminated", requested).any()

    def test_where_none_is_named_the_latest_of_the_benchmark_is_used(self, small: sa.Engine) -> None:
        add_scores(small, Q, benchmark="other")
        add_filter(small, KEPT.tolist())
        key = add_filter(small, [True] * N)
        add_filter(small, KEPT.tolist(), benchmark="other")
        add_weights(small, [1.0])  # a later finding, which is no filter
        assert load(small).finding_id == key

    @given(st.lists(st.booleans(), min_size=1, max_size=20), st.lists(st.integers(0, 40), max_size=20))
    def test_a_prompt_that_was_never_scored_does_not_stay(self, kept: list[bool], keys: list[int]) -> None:
        ids = np.arange(len(kept), dtype=np.int64) * 2  # odd keys were never judged
        nothing: dict[str, ReasonPrompts] = {}
        result = filter_of(ids, np.array(kept), nothing)
        stays, scored = result.align(np.array(keys, dtype=np.int64))
        known = dict(zip(ids.tolist(), kept, strict=True))
        assert stays.tolist() == [known.get(key, False) for key in keys]
        assert scored.tolist() == [key in known for key in keys]

    def test_a_filter_of_scores_that_changed_since_is_stale(self, small: sa.Engine) -> None:
        key = add_filter(small, KEPT.tolist())
        with transaction(small) as session:
            session.add(schema.FindingRun(finding_id=key, run_id=1, role="scores", checksum="of other scores"))
        assert load(small, key).stale == "changed since: run 1"


def filter_of(ids: NDArray[np.int64], kept: NDArray[np.bool_], reasons: dict[str, ReasonPrompts]) -> PromptFilter:
    return PromptFilter(
        finding_id=1,
        made_by="smart-filtering",
        benchmark="b",
        prompt_ids=ids,
        kept=kept,
        reasons=reasons,
        models=("m",),
        parameters={"confidence": 0.8},
        selection={},
    )


class TestDigest:
    def test_equal_filters_of_two_findings_have_one_digest(self, small: sa.Engine) -> None:
        first, second = (add_filter(small, KEPT.tolist(), reasons={"easy": [(2, False, None)]}) for _ in range(2))
        assert first != second
        assert load(small, first).digest == load(small, second).digest

    def test_it_changes_with_every_part_of_a_decision(self) -> None:
        ids = np.array([3, 7], dtype=np.int64)
        reason = ReasonPrompts(prompt_ids=ids[:1], retained=np.array([False]), groups=np.array([-1]))
        item = filter_of(ids, np.array([False, True]), {"easy": reason})
        rest = [
            replace(item, kept=np.array([False, False])),
            replace(item, prompt_ids=ids + 1),
            replace(item, reasons={}),
            replace(item, reasons={"similar": reason}),
            replace(item, reasons={"easy": replace(reason, retained=np.array([True]))}),
            replace(item, reasons={"easy": replace(reason, groups=np.array([1]))}),
            replace(item, reasons={"easy": replace(reason, prompt_ids=ids[1:])}),
            replace(item, models=("n",)),
            replace(item, parameters={"confidence": 0.9}),
        ]
        assert len({item.digest, *(second.digest for second in rest)}) == len(rest) + 1


class TestKeptPrompts:
    def test_matrices_prompts_and_leaderboard_are_those_of_a_store_without_the_others(
        self, scored: sa.Engine, only_kept: sa.Engine
    ) -> None:
        key = add_filter(scored, KEPT.tolist())
        with transaction(scored, write=False) as actual, transaction(only_kept, write=False) as peer:
            first_result, expected = (
                load_performance_matrix(actual, "b", filter=key),
                load_performance_matrix(peer, "b"),
            )
            assert np.array_equal(first_result.Q, expected.Q)
            assert first_result.tasks.tolist() == expected.tasks.tolist()
            assert first_result.models == expected.models
            kept = np.array([key for (key,) in store_keys(scored)])[KEPT]
            assert sorted(first_result.prompt_ids.tolist()) == kept.tolist()
            tasks, of_kept = load_task_matrix(actual, "b", filter=key), load_task_matrix(peer, "b")
            assert np.array_equal(tasks.T, of_kept.T)
            assert np.array_equal(tasks.n_prompts, of_kept.n_prompts)
            texts = load_prompts(actual, Selection(benchmark="b", filter=key))
            assert texts.prompt_ids.tolist() == kept.tolist()
            assert texts.tasks == load_prompts(peer, Selection(benchmark="b")).tasks
        result, unfiltered = board(scored, filter=key), board(only_kept)
        assert result.rows == unfiltered.rows
        assert (result.n_units, result.n_tasks, result.filter_id) == (int(KEPT.sum()), unfiltered.n_tasks, key)
        assert unfiltered.filter_id is None

    @pytest.mark.parametrize("weights", ["task-equal", "custom"])
    def test_weights_are_shared_among_the_kept_prompts(
        self, small: sa.Engine, only_kept: sa.Engine, weights: str
    ) -> None:
        key = add_filter(small, KEPT.tolist())
        values = np.arange(1.0, N + 1)
        of_all, of_kept = weights, weights
        if weights == "custom":
            of_all, of_kept = str(add_weights(small, values)), str(add_weights(only_kept, values[KEPT]))
        result, expected = board(small, filter=key, weights=of_all), board(only_kept, weights=of_kept)
        assert result.rows == expected.rows
        assert result.n_effective == expected.n_effective < KEPT.sum()

    def test_a_model_that_lacks_dropped_prompts_only_is_ranked(self, small: sa.Engine) -> None:
        gappy = np.full((N, 1), NAN)
        gappy[KEPT] = 1.0
        add_scores(small, gappy, tasks=TASKS, models=["gappy"])
        assert "missing" in {row.model: row for row in board(small).rows}["gappy"].excluded
        row = {row.model: row for row in board(small, filter=add_filter(small, KEPT.tolist())).rows}["gappy"]
        assert (row.excluded, row.rank, row.coverage, row.n) == ("", 1.0, 1.0, KEPT.sum())

    def test_a_model_without_a_score_on_kept_prompts_is_named(self, small: sa.Engine) -> None:
        blind = np.full((N, 1), NAN)
        blind[~KEPT] = 1.0
        add_scores(small, blind, tasks=TASKS, models=["blind"])
        result = board(small, filter=add_filter(small, KEPT.tolist()))
        assert "blind" not in {row.model for row in result.rows}
        assert (
            result.warnings[-1]
            == "Not shown, because the kept prompts have no scores per prompt from these models: blind."
        )

    def test_scores_published_for_whole_tasks_are_not_those_of_the_kept_prompts(self, small: sa.Engine) -> None:
        add_task_scores(small, np.full((1, 2), 0.123), tasks=["law"], models=["m0", "published only"])
        key = add_filter(small, KEPT.tolist())
        with transaction(small, write=False) as session:
            unfiltered, result = load_task_matrix(session, "b"), load_task_matrix(session, "b", filter=key)
        assert unfiltered.T[unfiltered.tasks.index("law"), 0] == 0.123
        assert result.models == ("m0", "m1", "m2", "m3")
        law = KEPT & (np.array(TASKS) == "law")
        assert result.T[result.tasks.index("law")].tolist() == pytest.approx(Q[law].mean(axis=0).tolist())

    def test_tasks_of_which_nothing_stays_are_no_rows(self, small: sa.Engine) -> None:
        key = add_filter(small, [task != "math" for task in TASKS])
        with transaction(small, write=False) as session:
            assert load_task_matrix(session, "b", filter=key).tasks == ("art", "law")


class TestWarnings:
    def test_how_much_stays_is_reported_and_nothing_else_where_all_is_scored(self, small: sa.Engine) -> None:
        key = add_filter(small, KEPT.tolist())
        assert warnings(small, key) == [f"Filter {key} keeps 10 of 12 prompts; only these are used."]
        assert warnings(small, key, tasks=("law",)) == [f"Filter {key} keeps 4 of 4 prompts; only these are used."]
        assert board(small, filter=key).warnings == (f"Filter {key} keeps 10 of 12 prompts; only these are used.",)
        with transaction(small, write=False) as session:
            assert list_filter_warnings(session, find_benchmark(session, "b"), Selection(benchmark="b")) == ()

    def test_prompts_that_came_later_are_counted_and_named_as_files_call_them(self, scored: sa.Engine) -> None:
        key = add_filter(scored, KEPT.tolist())
        new = grow(scored, 3)
        call(scored, {new[0]: "z-hash", new[1]: "hash"}, "law", namespace="lm_eval")
        call(scored, {new[0]: "p100"}, "law")
        only, never = warnings(scored, key)
        assert only == f"Filter {key} keeps 10 of 15 prompts; only these are used."
        assert never == (
            f"3 prompts are left out because filter {key} did not evaluate them; they were stored later or were not in "
            f"its selection: p100 (law), hash (law), {new[2]} (law). Run it again: {MAKING} (`suffrage show {key}` "
            "shows its options)."
        )
        assert board(scored, filter=key).n_units == 10

    def test_that_models_chose_the_prompts_is_reported(self, small: sa.Engine) -> None:
        key = add_filter(small, KEPT.tolist(), models=["m0"])
        assert warnings(small, key)[1].startswith(f"Filter {key} chose prompts by the answers of 1 models. Means")

    def test_five_are_named_before_the_list_breaks_off(self, small: sa.Engine) -> None:
        key = add_filter(small, KEPT.tolist())
        new = grow(small, 7)
        assert f"selection: {', '.join(f'{p} (law)' for p in new[:5])} …. Run" in warnings(small, key)[1]
        assert "7 prompts are left out" in warnings(small, key)[1]

    def test_prompts_of_tasks_that_are_not_looked_at_are_not_counted(self, small: sa.Engine) -> None:
        key = add_filter(small, KEPT.tolist())
        grow(small, 2, task="law")
        assert len(warnings(small, key, tasks=("art", "math"))) == 1

    def test_what_an_earlier_filter_dropped_was_scored(self, small: sa.Engine) -> None:
        first = add_filter(small, [False] * 4 + [True] * 8)
        ids = [key for (key,) in store_keys(small)]
        second = add_filter(small, [True] * N, selection={"filter": first})
        with transaction(small) as session:  # of the prompts that the first one keeps, it missed one
            decision = tables.filter_decision
            session.execute(
                sa.delete(decision).where(decision.c.finding_id == second, decision.c.prompt_id.in_(ids[:5]))
            )
        third = add_filter(small, [True] * N, selection={"filter": second})
        with transaction(small) as session:
            session.execute(
                sa.delete(decision).where(decision.c.finding_id == third, decision.c.prompt_id.in_(ids[:5]))
            )
        for key in (second, third):
            assert "1 prompts are left out" in warnings(small, key)[1]
            assert f"selection: {ids[4]} (math)" in warnings(small, key)[1]

    def test_a_stale_filter_reports_so(self, small: sa.Engine) -> None:
        key = add_filter(small, KEPT.tolist())
        with transaction(small) as session:
            session.add(schema.FindingRun(finding_id=key, run_id=2, role="scores", checksum="of other scores"))
        assert warnings(small, key)[1] == (f"Filter {key} is stale (changed since: run 2). Run it again: {MAKING}.")


class TestErrors:
    @pytest.mark.parametrize("wrong", [77, -(2**40), 2**40])
    def test_a_number_without_a_finding_is_answered_with_the_filters_of_the_benchmark(
        self, small: sa.Engine, wrong: int
    ) -> None:
        key = add_filter(small, KEPT.tolist())
        with pytest.raises(NotFoundError) as caught:
            board(small, filter=wrong)
        assert (
            str(caught.value)
            == f"No finding '{wrong}' with a filter. Known: {key}. List them with `suffrage findings`."
        )

    def test_where_there_is_none_yet_it_reports_how_to_make_one(self, small: sa.Engine) -> None:
        with pytest.raises(NotFoundError) as caught:
            board(small, filter=1)
        assert str(caught.value) == f"No finding '1' with a filter. None are stored yet. Create one: {MAKING}"
        with pytest.raises(SelectionError) as unnamed:
            load(small)
        assert str(unnamed.value) == f"b has no filter yet. Create one: {MAKING}"

    def test_a_finding_that_is_no_filter_is_refused(self, small: sa.Engine) -> None:
        second = add_weights(small, [1.0])
        with pytest.raises(SelectionError) as caught:
            board(small, filter=second)
        assert str(caught.value) == (
            f"Finding {second} (custom-weights) is not a filter. Choose another finding, or create one: {MAKING}."
        )

    def test_a_filter_of_another_benchmark_is_refused(self, small: sa.Engine) -> None:
        add_scores(small, Q, benchmark="other")
        second, local = add_filter(small, [True], benchmark="other"), add_filter(small, KEPT.tolist())
        with pytest.raises(SelectionError) as caught:
            board(small, filter=second)
        assert str(caught.value) == f"Finding {second} is not about b. Choose a filter of this benchmark: {local}."

    def test_a_filter_that_keeps_nothing_is_refused_where_it_would_be_used(self, small: sa.Engine) -> None:
        key = add_filter(small, [False] * N)
        assert load(small, key).n_kept == 0
        for question in (load_performance_matrix, load_task_matrix, load_prompts, load_leaderboard):
            with transaction(small, write=False) as session, pytest.raises(SelectionError) as caught:
                question(session, Selection(benchmark="b", filter=key))
            assert str(caught.value) == (
                f"Filter {key} keeps none of the 12 prompts of b. Leave --filter out, or create a filter that "
                "removes less."
            )

    def test_scores_of_whole_tasks_cannot_be_filtered(self, small: sa.Engine) -> None:
        add_task_scores(small, np.array([[0.5]]), tasks=["law"], models=["m0"], metric="published")
        key = add_filter(small, KEPT.tolist())
        for question in (load_leaderboard, load_task_matrix):
            with transaction(small, write=False) as session, pytest.raises(SelectionError) as caught:
                question(session, Selection(benchmark="b", metric="published", filter=key))
            assert str(caught.value) == (
                "b has scores of whole tasks only under published, so no prompts can be selected. "
                "Leave --filter and --split out."
            )

    def test_where_no_kept_prompt_has_a_score_it_reports_so(self, small: sa.Engine) -> None:
        key = add_filter(small, [task == "math" for task in TASKS])
        for question in (load_leaderboard, load_performance_matrix, load_task_matrix):
            with transaction(small, write=False) as session, pytest.raises(SelectionError) as caught:
                question(session, Selection(benchmark="b", tasks=("law",), filter=key))
            assert str(caught.value) == (
                f"No prompt of b that filter {key} keeps has a score under accuracy in the selected runs and tasks. "
                "Choose other tasks or models, or leave --filter out."
            )
