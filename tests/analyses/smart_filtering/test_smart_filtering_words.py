"""The summary, warnings and errors of a filter."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_benchmarks import USUAL, SmallBenchmark, complete_benchmark, run_filter, small

from analyses.numerics.filtering.effects.correlation_change import CorrelationChange
from analyses.presentation.correlation_warnings import warn_of_narrow_draws
from analyses.presentation.filter_effects import describe_effects
from tracker.errors import NotFoundError, SelectionError
from tracker.recording.finding import Undefined


@pytest.fixture(scope="module")
def complete() -> SmallBenchmark:
    return complete_benchmark()


class TestWords:
    def test_the_summary_of_all_steps_is_short_and_in_order(self, complete: SmallBenchmark) -> None:
        summary = complete.run(**USUAL, exclude_task=("task 1",)).summary
        assert re.fullmatch(
            r"The filter removes \d+ of 120 prompts \(\d+\.\d%\); (then \d of 9 models change|no model changes) rank\.",
            summary.headline,
        )
        flagged, rules, ranks, agreement, error = summary.evidence
        assert re.fullmatch(
            r"Flagged: duplicate \d+ \(\d+ removed\), anomalous \d+ \(\d+ removed\), easy \d+ \(\d+ removed\), "
            r"contaminated \d+ \(\d+ removed\), similar \d+ \(\d+ removed\), suspect-label \d+ \(reported only\)\.",
            flagged,
        )
        assert re.fullmatch(
            r"Filter models: model \d, model \d, model \d\. "
            r"Easy: all 3 filter models get them right with a probability above 0\.8 \(option letters\)\. "
            r"Contaminated: all 3 filter models get them right without the question too\. "
            r"Similar: cosine distance below 0\.\d+ \(the first of \d maxima of the density\)\. "
            r"Suspect label: all 3 filter models get them wrong with confidence\.",
            rules,
        )
        assert ranks.startswith("Tau-b of the rankings before and after: ")
        assert agreement.startswith("Two models give the same answer on ")
        assert error.startswith("A filter by half of the models estimates ")

    @pytest.mark.parametrize(
        ("options", "pattern"),
        [
            (
                {"without_confidence": True},
                r"Filter models: model \d, model \d, model \d\. "
                r"Easy: all 3 filter models get them right\. ",
            ),
            ({"probability": "likelihoods"}, r"above 0\.8 \(option likelihoods\)"),
            ({"n_models": 2}, "Easy: both filter models get them right with"),
            ({"n_models": 1}, "Easy: the one filter model gets them right with"),
            ({"confidence": 0.9999999999}, r"contaminated 0, "),
            ({"retain": 1.0}, r"easy \d+ \(0 removed\)"),
            ({"threshold": 0.05}, r"cosine distance below 0\.05 \(the option --threshold\)"),
            ({"bandwidth": 1.0, "unimodal": "half"}, r"\(half of the density's only maximum\)"),
            ({"bandwidth": 1.0, "largest_group": 1.0}, r"\(the density's only maximum\)"),
            ({"without_similar": True}, r"Step `similar` is skipped: the option --without-similar is set\."),
            (
                {"largest_group": 0.001},
                r"Step `similar` is skipped: below 0\.\d+ one group .*\. Choose another bandwidth, .* a larger group\.",
            ),
        ],
    )
    def test_the_summary_names_the_rule(self, complete: SmallBenchmark, options: dict[str, Any], pattern: str) -> None:
        assert re.search(pattern, str(complete.run(**USUAL | options).summary))

    def test_the_reason_of_a_skipped_step_stands_once_among_the_metrics(self, complete: SmallBenchmark) -> None:
        metrics = complete.but(blind=None, blind_gold={}).run(**USUAL).finding.metrics
        assert metrics["contaminated.n_flagged"] == Undefined("no answer-only run is stored")
        for name in ("share_flagged", "n_removed", "share_removed"):
            assert metrics[f"contaminated.{name}"] == Undefined("the step was skipped")

    def test_the_step_contaminated_accepts_its_models(self, complete: SmallBenchmark) -> None:
        first, *further = complete.run(**USUAL).finding.filter_models
        stored = complete.blind.copy()
        stored[:, complete.models.index(first)] = np.nan
        without = complete.but(blind=stored)
        assert "contaminated" in without.run(**USUAL).finding.skipped
        report = without.run(**USUAL, contaminated_models=tuple(further))
        expected = complete.run(**USUAL, contaminated_models=tuple(further))
        assert "contaminated" not in report.finding.skipped
        flags = report.finding.results["contaminated"].flags.flagged
        np.testing.assert_array_equal(flags, expected.finding.results["contaminated"].flags.flagged)
        assert flags.sum() >= complete.run(**USUAL).finding.results["contaminated"].flags.flagged.sum()
        assert "all get them right without the question" in str(report.summary)
        with pytest.raises(SelectionError, match="no scores of nobody"):
            complete.run(**USUAL, contaminated_models=("nobody",))

    @pytest.mark.parametrize(
        ("model", "changes", "pattern"),
        [
            (None, {"blind": None, "blind_gold": {}}, "Step `contaminated` is skipped: no answer-only run is stored"),
            ("blind", {}, "Step `contaminated` is skipped: no answer-only run is stored for model"),
            ("blind_gold", {}, "no probability of the option letters is stored for the answer-only runs of model"),
            (
                "answer_probability",
                {},
                "Step `suspect-label` is skipped: no probability of the answers is stored for model",
            ),
        ],
    )
    def test_a_step_without_evidence_is_skipped_with_the_reason(
        self, complete: SmallBenchmark, model: str | None, changes: dict[str, Any], pattern: str
    ) -> None:
        first = complete.run(**USUAL).finding.filter_models[0]
        if model is not None:
            stored = complete.blind_gold["letters"] if model == "blind_gold" else getattr(complete, model)
            matrix = stored.copy()
            matrix[:, complete.models.index(first)] = np.nan
            changes = {model: {"letters": matrix} if model == "blind_gold" else matrix}
            pattern += first.removeprefix("model")
        assert pattern in str(complete.but(**changes).run(**USUAL).summary)

    def test_warnings_explain_the_numbers(self, complete: SmallBenchmark) -> None:
        warnings = complete.but(makers={}).run(**USUAL, probability="likelihoods").warnings
        text = " ".join(warnings)
        assert "The organization of 3 filter models is unknown." in text
        assert "suffrage models import FILE" in text
        assert "the paper's from option letters" in text
        assert "See the table `path`." in text
        assert re.search(r"Without the question, .*\(guessing: 25\.0%\)|no better than guessing \(25\.0% right\)", text)
        alone = " ".join(complete.run(**USUAL, without_confidence=True).warnings)
        assert "Without confidence, more prompts are easy" in alone
        few = " ".join(small(2, m=5).run(**USUAL | {"n_models": 2}).warnings)
        assert "The subset error is undefined: models are split in two from 8 on" in few

    @pytest.mark.parametrize(
        ("change", "low", "high", "pattern"),
        [
            (
                0.012,
                -0.02,
                0.05,
                r"\(\+0\.012; 95% of draws of the models -0\.020 to \+0\.050: may be noise\)",
            ),
            (0.1, 0.04, 0.2, r"\+0\.040 to \+0\.200: does not depend on a few models\)"),
            (0.1, 0.0, 0.2, r": may be noise\)"),
            (0.0, 0.0, 1e-15, r"0\.500 before, 0\.500 after \(no change in 95% of draws of the models\)"),
        ],
    )
    def test_a_change_of_a_correlation_is_noise_only_where_draws_of_the_models_include_none(
        self, complete: SmallBenchmark, change: float, low: float, high: float, pattern: str
    ) -> None:
        numbers = {"change": change, "low": low, "high": high, "share_not_above": 0.5}
        correlation_change = CorrelationChange(
            n_models=29, before=0.5, after=0.5 + change, n_draws=100, n_undefined=0, **numbers
        )
        effects = replace(complete.run(**USUAL).finding.effects, changes={"pearson": correlation_change})
        text = " ".join(describe_effects(effects, agreement_of="answers", against="arena (elo)"))
        assert re.search(pattern, text)

    def test_few_models_warn_of_a_range_too_narrow(self, complete: SmallBenchmark) -> None:
        external_scores = {name: float(j * j % 7) for j, name in enumerate(complete.models)}
        warnings = complete.but(external_scores=external_scores).run(**USUAL).warnings
        assert sum("correlation changes are too narrow" in warning for warning in warnings) == 1
        assert warn_of_narrow_draws(15)
        assert not warn_of_narrow_draws(16)

    def test_the_prompts_that_the_other_half_is_scored_on_are_counted(self, complete: SmallBenchmark) -> None:
        report = complete.run(**USUAL, n_splits=4)
        result = report.finding
        n_kept = result.effects.error.n_kept
        assert result.metrics["subset_error.n_kept.mean"] == pytest.approx(n_kept.mean())
        assert report.summary.evidence[-1].endswith(f"{n_kept.mean():,.0f} prompts kept on average.")

    def test_models_no_better_than_guessing_warn_of_little_power(self, complete: SmallBenchmark) -> None:
        guesses = (np.arange(120)[:, None] + np.arange(9)) % 4 == 0
        warnings = complete.but(blind=guesses.astype(float)).run(**USUAL).warnings
        assert any("The step `contaminated` has little power" in warning for warning in warnings)

    def test_where_most_prompts_have_a_similar_one_it_is_doubted(self, complete: SmallBenchmark) -> None:
        pairs = complete.but(vectors=np.eye(60)[np.arange(120) // 2])
        warnings = pairs.run(**USUAL | {"threshold": 0.5}).warnings
        assert any("100% of the prompts are similar to another one" in warning for warning in warnings)
        assert not any("are similar to another one" in warning for warning in complete.run(**USUAL).warnings)


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "pattern"),
        [
            ({"retain": 2.0}, r"retain is 2; it must be from 0 to 1\."),
            ({"protect_lexical": -0.5}, r"protect_lexical is -0\.5; it must be from 0 to 1\."),
            ({"largest_group": float("nan")}, r"largest_group is nan; it must be from 0 to 1\."),
            ({"confidence": 1.0}, "confidence is 1; it must be at least 0 and below 1"),
            ({"bandwidth": 0.0}, r"bandwidth is 0; it must be from 0\.01 to 10\."),
            ({"bandwidth": 1e-9}, r"bandwidth is 1e-09; it must be from 0\.01 to 10\."),
            ({"threshold": 0.0}, r"threshold is 0\.0; it must be above 0 and at most 2"),
            ({"threshold": 2.5}, "threshold is 2.5; it must be above 0 and at most 2"),
            ({"threshold": float("nan")}, "threshold is nan"),
            ({"exclude_task": ("task 9",)}, r"No task 'task 9' to exclude\. Known: task 0, task 1"),
            ({"n_models": 0}, r"n_models is 0; it must be at least 1\."),
            ({"n_neighbours": 0}, r"n_neighbours is 0; it must be at least 1\."),
            ({"n_subsets": 0}, r"n_subsets is 0; it must be at least 1\."),
            ({"n_splits": 0}, r"n_splits is 0; it must be at least 1\."),
            ({"n_draws": 0}, r"n_draws is 0; it must be at least 1\."),
            ({"seed": -1}, r"seed is -1; it must be at least 0\."),
            ({"n_models": 10}, r"9 models .* 10 are needed\. Use a smaller --n-models, or name the models"),
            (
                {"n_models": 10, "open_only": True},
                "Too few filter models: 9 open models of different organizations with a score for each of 120 prompts",
            ),
        ],
    )
    def test_options_that_mean_nothing_are_refused(
        self, complete: SmallBenchmark, options: dict[str, Any], pattern: str
    ) -> None:
        with pytest.raises(SelectionError, match=pattern):
            complete.run(**USUAL | options)

    @pytest.mark.parametrize(
        ("facts", "pattern"),
        [
            ({"Q": np.full((120, 9), 0.5)}, "these are others. Select another metric with `--metric`"),
            ({"higher_is_better": False, "metric": "loss"}, "lower loss is better.*another metric"),
            ({"condition": "answer_only"}, "answer-only runs.*Leave out `--condition`"),
        ],
    )
    def test_scores_that_are_not_right_and_wrong_are_refused(
        self, complete: SmallBenchmark, facts: dict[str, Any], pattern: str
    ) -> None:
        scores, *rest = complete.inputs()
        with pytest.raises(SelectionError, match=pattern):
            run_filter(replace(scores, **facts), *rest, **USUAL)

    @pytest.mark.parametrize(
        ("changes", "pattern"),
        [
            ({"vectors": None}, r"b have no vectors yet.*suffrage embed b.*Or skip the step: --without-similar"),
            ({"vectors": np.eye(120)[:, :110]}, "10 prompts have a vector of zeros.*Embed texts that are not empty"),
            ({"vectors": np.where(np.eye(120) > 0, np.inf, 1)}, "120 prompts have a vector that is not finite.*again"),
            ({"gold": {}}, r"No probability of the gold answer is stored for model.*--without-confidence"),
            ({"named_models": ("model 1", "nobody")}, "No model 'nobody' with such scores"),
            (
                {"makers": {}},
                "does not know its organization.*import FILE.*--models.*--allow-unknown",
            ),
            (
                {"external_scores": {"model 1": 1.0}},
                "arena has scores of 1 of the 9 ranked models.*at least 3.*suffrage models import",
            ),
        ],
    )
    def test_what_is_missing_is_named_with_what_brings_it(
        self, complete: SmallBenchmark, changes: dict[str, Any], pattern: str
    ) -> None:
        with pytest.raises((SelectionError, NotFoundError), match=pattern):
            complete.but(**changes).run(n_models=3, n_neighbours=8)

    def test_probabilities_of_the_chosen_kind_must_be_stored(self, complete: SmallBenchmark) -> None:
        only = complete.but(gold={"likelihoods": complete.gold["likelihoods"]})
        assert set(only.run(**USUAL).tables["filter_models"]["probability_of"].to_pylist()) == {"likelihoods"}
        with pytest.raises(
            SelectionError, match="No probability of the gold answer of the option letters is stored for"
        ):
            only.run(**USUAL, probability="letters")

    def test_an_open_model_must_be_known_to_be_one(self, complete: SmallBenchmark) -> None:
        makers = {name: replace(maker, open_weights=None) for name, maker in complete.makers.items()}
        with pytest.raises(SelectionError, match=r"does not know whether its weights are open.*--allow-unknown"):
            complete.but(makers=makers).run(n_models=3, n_neighbours=8, open_only=True)

    def test_a_model_that_filters_must_have_a_score(self, complete: SmallBenchmark) -> None:
        scores = complete.scores.copy()
        scores[:, 4] = np.nan
        with pytest.raises(SelectionError, match=r"filter model 'model 4' has no score.*--models, or choose --tasks"):
            complete.but(scores=scores, named_models=("model 1", "model 4")).run()

    def test_somebody_must_have_a_score_for_every_prompt(self, complete: SmallBenchmark) -> None:
        gaps = np.where(np.arange(120)[:, None] % 9 == np.arange(9), np.nan, complete.scores)
        with pytest.raises(SelectionError, match=r"No model has a score for every prompt.*`--tasks` or `--runs`"):
            complete.but(scores=gaps, named_models=("model 1", "model 2")).run(n_neighbours=8)

    def test_one_prompt_cannot_be_compared(self, complete: SmallBenchmark) -> None:
        scores, *rest = complete.inputs()
        with pytest.raises(SelectionError, match="at least 2 prompts, here: 1"):
            run_filter(scores.rows(np.arange(120) == 5), *rest, **USUAL)

    def test_prompts_without_a_vector_are_counted(self, complete: SmallBenchmark) -> None:
        *before, vectors, external_scores = complete.inputs()
        result = replace(vectors.vectors, E=vectors.vectors.E[5:], prompt_ids=vectors.vectors.prompt_ids[5:])
        with pytest.raises(SelectionError, match=r"5 of 120 prompts have no vector by planted.*suffrage embed b"):
            run_filter(*before, replace(vectors, vectors=result), external_scores, **USUAL)


class TestRefusedAtOnce:
    def test_two_missing_inputs_are_one_error(self, complete: SmallBenchmark) -> None:
        nothing = complete.but(vectors=None, gold={})
        with pytest.raises(
            SelectionError, match=r"(?s)^1\. .*--without-similar.*\n2\. No probability.*--without-confidence"
        ):
            nothing.run(**USUAL)

    def test_one_missing_input_is_a_plain_error(self, complete: SmallBenchmark) -> None:
        with pytest.raises(SelectionError, match=r"^No probability of the gold answer"):
            complete.but(gold={}).run(**USUAL)

    def test_without_any_text_no_duplicates_are_looked_for(self, complete: SmallBenchmark) -> None:
        result = complete.but(texts=[None] * len(complete.texts)).run(**USUAL).finding
        assert result.metrics["duplicate.n_flagged"] == Undefined("no text of these prompts is stored")


class TestPath:
    @pytest.mark.parametrize(
        ("options", "is_marked"), [({}, True), ({"threshold": 0.05}, False), ({"groups": "stars"}, False)]
    )
    def test_only_the_settings_of_the_step_are_marked(
        self, complete: SmallBenchmark, options: dict[str, Any], is_marked: bool
    ) -> None:
        path = complete.run(**USUAL, **options).tables["path"]
        assert any(path["chosen"].to_pylist()) == is_marked
