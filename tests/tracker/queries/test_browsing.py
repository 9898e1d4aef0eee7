"""Queries behind single pages: similar texts, checkpoints, newest runs, relevance of findings, reported values."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from tracker.database import transaction
from tracker.ingest.parsing.reported_scores import ReportedDifference
from tracker.ingest.write.parsed_run import join_differences
from tracker.queries.browsing.checkpoints import find_step, group_checkpoints
from tracker.queries.browsing.newest_runs import list_newest_runs
from tracker.queries.browsing.run_responses import load_first_answers, load_run_prompts
from tracker.queries.browsing.similar_texts import LEAST_SIMILARITY, TextIndex
from tracker.queries.browsing.similar_vectors import SimilarVectors
from tracker.queries.catalogue.listing import list_runs
from tracker.queries.catalogue.unverified_runs import ReportedValue, parse_differences
from tracker.queries.embeddings import Embeddings
from tracker.queries.findings.finding_records import FindingRow
from tracker.queries.findings.relevance import sort_by_relevance
from tracker.queries.findings.summary import Summary
from tracker.queries.sql import tables


def compare_texts(first: str, second: str) -> float:
    """The similarity of two texts, the slow way."""
    pairs = []
    for text in (first, second):
        words = ["^", *re.findall(r"\w+", text.casefold()), "$"]
        pairs.append({(words[i], words[i + 1]) for i in range(len(words) - 1)} if len(words) > 2 else set())
    either = pairs[0] | pairs[1]
    return len(pairs[0] & pairs[1]) / len(either) if either else 0.0


def list_cosines(E: np.ndarray, place: int) -> list[float]:
    """The cosine of one vector with each other one, the slow way; 0 for zeros."""
    lengths = [float(np.sqrt((row**2).sum())) for row in E]
    products = [float((row * E[place]).sum()) for row in E]
    return [
        product / (length * lengths[place]) if length * lengths[place] else 0.0
        for at, (product, length) in enumerate(zip(products, lengths, strict=True))
        if at != place
    ]


class TestSimilarVectors:
    @given(st.integers(1, 12), st.integers(0, 10**6), st.integers(1, 15))
    def test_the_largest_cosines_come_first(self, n: int, seed: int, n_wanted: int) -> None:
        E = np.random.default_rng(seed).integers(-1, 2, (n, 3)).astype(np.float32)  # with zeros, and many ties
        keys = 10 + 3 * np.arange(n)
        index = SimilarVectors(vectors=Embeddings(E=E, prompt_ids=keys, encoder_id=1, encoder="e", benchmark="b"))
        for place, key in enumerate(keys.tolist()):
            similar = index.find(key, n_wanted)
            expected = sorted(list_cosines(E, place), reverse=True)[:n_wanted]
            assert [cosine for _, cosine in similar] == pytest.approx(expected, abs=1e-6)
            assert len(dict(similar).keys() - {key}) == len(similar)
        assert index.find(11, 5) == []

    def test_equal_cosines_are_in_the_order_of_keys(self) -> None:
        E = np.array([[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]], dtype=np.float32)
        keys = np.array([3, 5, 8, 9, 20])
        index = SimilarVectors(vectors=Embeddings(E=E, prompt_ids=keys, encoder_id=1, encoder="e", benchmark="b"))
        assert index.find(8, 2) == [(3, 1.0), (9, 1.0)]


class TestSimilarTexts:
    @given(st.lists(st.text(alphabet="ab ?", max_size=12), min_size=1, max_size=8))
    def test_they_are_those_with_most_equal_word_pairs(self, texts: list[str]) -> None:
        keys = [10 * place for place in range(1, len(texts) + 1)]
        index = TextIndex.build(keys, texts)
        for place, text in enumerate(texts):
            expected = {
                key: similarity
                for key, rival in zip(keys, texts, strict=True)
                if key != keys[place] and (similarity := compare_texts(text, rival)) >= LEAST_SIMILARITY
            }
            similar = index.find_similar(keys[place], 100)
            assert {key: pytest.approx(value) for key, value in similar} == expected
            assert [value for _, value in similar] == sorted(expected.values(), reverse=True)

    def test_a_prompt_without_text_has_none(self) -> None:
        assert TextIndex.build([1, 2], ["a b", "a b"]).find_similar(3, 5) == []
        assert TextIndex.build([], []).find_similar(1, 5) == []


class TestCheckpoints:
    @pytest.mark.parametrize(
        ("name", "step"),
        [("checkpoint-10000", 10_000), ("olmo-7b-step1k-hf", 1000), ("m_iter_5", 5), ("x/ckpt2M", 2_000_000)],
    )
    def test_the_step_is_the_number_behind_its_mark(self, name: str, step: int) -> None:
        assert (find_step(name) or ("", 0))[1] == step

    @pytest.mark.parametrize("name", ["llama-3.1-70b", "stepfun", "step-1.5", "step3b", ""])
    def test_other_numbers_are_no_steps(self, name: str) -> None:
        assert find_step(name) is None

    def test_checkpoints_of_one_training_are_in_order(self) -> None:
        names = ["a-step10", "a-step9", "b-step9", "a-step9-chat"]
        assert group_checkpoints(names) == {"a-step…": [(9, "a-step9"), (10, "a-step10")]}


def finding(key: int, **changes: object) -> FindingRow:
    row = FindingRow(
        id=key, name=f"analysis {key}", benchmark="b", status="complete", summary=Summary(""), error="",
        main_metrics={}, recorded=datetime(2026, 1, 1, tzinfo=UTC), stale="", selection={}, leader="first",
    )  # fmt: skip
    return replace(row, **changes)  # type: ignore[arg-type]


def test_findings_that_matter_most_come_first() -> None:
    rows = [
        finding(1, status="failed"),
        finding(2, stale="a later run exists"),
        finding(3, name="same"),
        finding(4, name="same"),
        finding(5, leader="second"),
        finding(6),
    ]
    assert [row.id for row in sort_by_relevance(rows[::-1], ("first",))] == [5, 6, 4, 3, 2, 1]


class TestUnverified:
    def test_reported_and_recomputed_values_are_those_of_the_import(self) -> None:
        texts = [
            ReportedDifference(None, "the file reports acc of a; b as 0.75, but its scores give 0.5").text,
            "the file reports the standard error of acc as 0.1, but its scores give 0.2",
            "the file reports 1,200 samples, but holds 1,199",
        ]
        assert parse_differences(join_differences(texts)) == [
            ReportedValue(name="acc of a; b", reported="0.75", recomputed="0.5"),
            ReportedValue(name="the standard error of acc", reported="0.1", recomputed="0.2"),
            ReportedValue(name="samples", reported="1,200", recomputed="1,199"),
        ]

    def test_another_form_has_none(self) -> None:
        assert parse_differences("something else") == []


class TestRuns:
    def test_the_newest_come_first_with_the_run_before(self, filled: sa.Engine) -> None:
        with transaction(filled, write=False) as session:
            newest = list_newest_runs(session, 1000)
            every = [run for run in list_runs(session) if run.status == "complete"]
            assert [run.id for run, _ in newest] == [run.id for run in every]
            for run, since in newest:
                same = [
                    earlier.id
                    for earlier in every
                    if earlier.id < run.id
                    and (earlier.model, earlier.benchmark, earlier.condition, earlier.variant)
                    == (run.model, run.benchmark, run.condition, run.variant)
                ]
                assert since == max(same, default=None)
            assert [run.id for run, _ in list_newest_runs(session, 2)] == [run.id for run in every[:2]]

    def test_the_prompts_of_a_run_have_its_scores_and_answers(self, filled: sa.Engine) -> None:
        score, answer, metric = tables.score.c, tables.answer.c, tables.metric.c
        with transaction(filled, write=False) as session:
            run = next(run for run in list_runs(session) if run.n_scores)
            prompts = load_run_prompts(session, run.id)
            rows = session.execute(
                sa.select(score.prompt_id, score.value)
                .join(tables.metric, metric.id == score.metric_id)
                .where(score.run_id == run.id, metric.name == prompts.metric)
            ).all()
            values: dict[int, list[float]] = {}
            for key, value in rows:
                values.setdefault(key, []).append(value)
            scored = {
                key: value
                for key, value in zip(prompts.prompt_ids.tolist(), prompts.score.tolist(), strict=True)
                if not np.isnan(value)
            }
            assert scored == {key: pytest.approx(np.mean(each)) for key, each in values.items()}
            prompt, task = tables.prompt.c, tables.task.c
            names = dict(session.execute(sa.select(prompt.id, task.name).where(task.id == prompt.task_id)).all())
            assert prompts.tasks.tolist() == [names[key] for key in prompts.prompt_ids.tolist()]
            texts = dict(
                session.execute(
                    sa.select(answer.prompt_id, answer.text).where(
                        answer.run_id == run.id, answer.trial == 0, answer.extraction == ""
                    )
                ).all()
            )
            loaded = load_first_answers(session, [run.id], prompts.prompt_ids.tolist())
            assert {key: loaded[run.id, key] for key in texts} == texts
