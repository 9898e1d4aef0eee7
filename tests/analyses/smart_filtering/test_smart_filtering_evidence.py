"""Edges of the steps, and what stands beside the filter, counted by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from plain_smart import plain_smart
from scipy.stats import kendalltau, pearsonr, spearmanr
from small_benchmarks import USUAL, SmallBenchmark, complete_benchmark

from tracker.queries.filtering.filter_models import ModelOrigin
from tracker.recording.finding import Undefined
from tracker.statistics.rng_streams import SPLITS, generator


@pytest.fixture(scope="module")
def complete() -> SmallBenchmark:
    return complete_benchmark()


class TestEdges:
    def test_a_probability_of_exactly_the_confidence_is_not_above_it(self, complete: SmallBenchmark) -> None:
        n, m = complete.scores.shape
        sure = np.full((n, m), 0.9)
        sure[:5], sure[5] = 0.8, np.nextafter(0.8, 1)
        b = complete.but(scores=np.ones((n, m)), gold={"letters": sure})
        easy = b.run(**USUAL).finding.steps["easy"]
        assert not easy.flagged[:5].any()
        assert easy.flagged[5:].all()

    def test_a_pair_at_exactly_the_threshold_is_not_below_it(self, complete: SmallBenchmark) -> None:
        n = len(complete.scores)
        distinct = np.eye(n)  # all at a distance of 1
        distinct[1] = distinct[0]
        for threshold, flagged in ((1.0, 2), (np.nextafter(1, 2), n)):
            result = (
                complete.but(vectors=distinct).run(**USUAL | {"threshold": threshold, "largest_group": 1.0}).finding
            )
            assert result.steps["similar"].flagged.sum() == flagged

    def test_a_group_of_exactly_the_largest_share_is_allowed(self, complete: SmallBenchmark) -> None:
        n = len(complete.scores)
        crowded = np.eye(n)
        crowded[:12] = crowded[0]
        for largest, reason in ((0.1, ""), (0.0999, "one group would hold 12 of 120 prompts.*allow a larger group")):
            result = complete.but(vectors=crowded).run(**USUAL | {"threshold": 0.5, "largest_group": largest}).finding
            assert re.search(reason, result.skipped.get("similar", ""))
            assert ("similar" in result.skipped) == bool(reason)

    def test_models_that_are_named_may_be_of_one_maker_and_lack_scores(self, complete: SmallBenchmark) -> None:
        scores = complete.scores.copy()
        scores[7, 2] = np.nan
        makers = dict.fromkeys(complete.models, ModelOrigin(organization="one", open_weights=None))
        report = complete.but(scores=scores, makers=makers, named_models=("model 2", "model 4")).run(n_neighbours=8)
        assert set(report.finding.filter_models) == {"model 2", "model 4"}
        assert not report.finding.steps["easy"].flagged[7]
        warnings = " ".join(report.warnings)
        assert "Several filter models are of one organization (one)" in warnings
        assert "Not ranked, because scores are missing: model 2." in warnings
        assert "Prompts without a score of model 2 are never easy." in warnings
        assert report.finding.metrics["n_models"] == 8

    def test_tasks_with_unknown_texts_are_not_anomalous(self, complete: SmallBenchmark) -> None:
        hidden = [task == "task 2" for task in complete.tasks]
        texts = [None if out else text or "Why?" for out, text in zip(hidden, complete.texts, strict=True)]
        choices = [None if out else list("abcd") for out in hidden]
        report = complete.but(texts=texts, choices=choices).run(**USUAL)
        assert f"{sum(hidden)} prompts have no text, so duplicates of them cannot be found." in report.warnings
        assert not any("Anomalous tasks" in warning for warning in report.warnings)

    def test_tasks_without_options_stand_out_among_others_and_stay(self, complete: SmallBenchmark) -> None:
        texts = [f"What is number {i} of this list of numbers?" for i in range(len(complete.texts))]
        choices = [[] if task == "task 2" else list("abcd") for task in complete.tasks]
        odd = complete.but(texts=texts, choices=choices, tasks=[f"task {i % 6}" for i in range(120)])
        odd = odd.but(choices=[[] if i % 6 == 2 else list("abcd") for i in range(120)])
        report = odd.run(**USUAL)
        assert any("task 2 (0.0 options, against 4.0). They are not removed" in warning for warning in report.warnings)
        assert not report.finding.steps["anomalous"].flagged.any()
        assert not any("Anomalous tasks" in warning for warning in odd.run(**USUAL, exclude_task=("task 2",)).warnings)

    def test_equal_vectors_have_no_threshold_but_an_explicit_one(self, complete: SmallBenchmark) -> None:
        same = complete.but(vectors=np.ones((120, 3)))
        assert "set a threshold" in same.run(**USUAL).finding.skipped["similar"]
        result = same.run(**USUAL | {"threshold": 0.1, "largest_group": 1.0}).finding
        assert result.steps["similar"].removed.sum() == 60

    def test_where_everything_is_excluded_nothing_is_left_to_rank(self, complete: SmallBenchmark) -> None:
        report = complete.run(**USUAL, exclude_task=tuple(set(complete.tasks)))
        assert report.summary.headline == "The filter removes all 120 prompts, so no ranking is left."
        for name, value in report.finding.metrics.items():
            assert value.reason if isinstance(value, Undefined) else np.isfinite(value), name


class TestEvidence:
    def test_models_are_scored_and_ranked_before_and_after(self, complete: SmallBenchmark) -> None:
        report = complete.run(**USUAL)
        result = report.finding
        rows = {row["model"]: row for row in report.tables["models"].to_pylist()}
        before = [sum(column) / 120 for column in complete.scores.T]
        after = [sum(column[result.kept]) / result.kept.sum() for column in complete.scores.T]
        for j, name in enumerate(complete.models):
            assert rows[name]["score_before"] == pytest.approx(before[j])
            assert rows[name]["score_after"] == pytest.approx(after[j])
            assert rows[name]["is_filter_model"] == (name in result.filter_models)
        rest = [j for j, name in enumerate(complete.models) if name not in result.filter_models]
        assert result.metrics["tau"] == pytest.approx(kendalltau(before, after)[0])
        assert result.metrics["tau_without_filter_models"] == pytest.approx(
            kendalltau([before[j] for j in rest], [after[j] for j in rest])[0]
        )
        best = sorted(result.filter_models, key=lambda name: -before[complete.models.index(name)])
        assert list(result.filter_models) == best
        assert report.rankings["filter_models"].models == result.filter_models
        assert report.rankings["filter_models"].rank.tolist() == sorted(report.rankings["filter_models"].rank)

    @pytest.mark.parametrize("agreement_of", ["answers", "right or wrong"])
    def test_models_agree_on_their_answers_or_else_on_what_is_right(
        self, complete: SmallBenchmark, agreement_of: str
    ) -> None:
        codes = complete.codes.copy()
        if agreement_of == "right or wrong":
            codes[:, 5] = -1
        report = complete.but(codes=codes).run(**USUAL)
        result = report.finding
        outcomes = codes if agreement_of == "answers" else complete.scores
        for when, rows in (("before", np.ones(120, bool)), ("after", result.kept)):
            shares = [(outcomes[rows, a] == outcomes[rows, b]).mean() for a in range(9) for b in range(a)]
            assert result.metrics[f"agreement.share.{when}"] == pytest.approx(np.mean(shares))
        assert result.agreement_of == agreement_of
        assert ("give the same answer" if agreement_of == "answers" else "are both right or both wrong") in str(
            str(report.summary)
        )

    def test_correlations_are_with_the_models_that_both_have(self, complete: SmallBenchmark) -> None:
        external_scores = {name: float(j * j % 7) for j, name in enumerate(complete.models) if j != 3} | {
            "stranger": 9.0
        }
        report = complete.but(external_scores=external_scores).run(**USUAL)
        result = report.finding
        shared = [j for j in range(9) if j != 3]
        values = [external_scores[complete.models[j]] for j in shared]
        for name, peer in (("pearson", pearsonr), ("spearman", spearmanr)):
            for when, rows in (("before", np.ones(120, bool)), ("after", result.kept)):
                means = complete.scores[rows][:, shared].mean(axis=0)
                assert result.metrics[f"against.{name}.{when}"] == pytest.approx(peer(means, values)[0])
        assert result.metrics["against.pearson.n_models"] == 8
        assert "A correlation over 8 models is unreliable." in report.warnings
        assert any("Correlation with arena (elo) over 8 models. Pearson: " in item for item in report.summary.evidence)

    @pytest.mark.parametrize("options", [{}, {"without_confidence": True}, {"probability": "likelihoods"}])
    def test_the_error_of_subsets_is_that_of_models_that_did_not_choose(
        self, complete: SmallBenchmark, options: dict[str, Any]
    ) -> None:
        """Of each half the best three filter anew, by what is known of them alone."""
        all_options = USUAL | {"retain": 0.0, "n_splits": 5, "seed": 4} | options
        result = complete.run(**all_options).finding
        full = complete.scores.mean(axis=0)
        for split in range(5):
            half = generator(4, SPLITS, split).permutation(9)[:4]
            best = tuple(complete.models[j] for j in sorted(half.tolist(), key=lambda j: (-full[j], j))[:3])
            again = plain_smart(
                complete.but(named_models=best),
                **{name: all_options[name] for name in all_options if name not in ("n_splits", "seed")},
            )
            gone = result.steps["duplicate"].removed | result.steps["similar"].removed
            gone = gone | np.isin(np.arange(120), [*again.flagged["easy"], *again.flagged["contaminated"]])
            scored = [j for j in range(9) if j not in half]
            error = np.abs(complete.scores[~gone].mean(axis=0) - full)[scored].mean()
            assert result.effects.error.chosen.raw[split] == pytest.approx(error), split

    def test_answer_only_runs_stand_beside_guessing(self, complete: SmallBenchmark) -> None:
        choices = [[*"abcd"[: 2 + i % 3]] if i % 5 else None for i in range(120)]
        report = complete.but(choices=choices).run(**USUAL)
        rows = report.tables["answer_only"].to_pylist()
        assert [row["accuracy"] for row in rows] == sorted((row["accuracy"] for row in rows), reverse=True)
        assert complete.blind is not None
        for row in rows:
            scores = complete.blind[:, complete.models.index(row["model"])]
            known = [i for i in range(120) if choices[i] and not np.isnan(scores[i])]
            chances = [1 / len(choices[i] or ()) for i in known]
            assert row["n_prompts"] == len(known)
            assert row["accuracy"] == pytest.approx(scores[known].mean())
            assert row["chance"] == pytest.approx(np.mean(chances))
            assert row["stderr_of_chance"] == pytest.approx(np.sqrt(sum(p * (1 - p) for p in chances)) / len(known))
            assert row["filters"] == (row["model"] in report.finding.filter_models)
