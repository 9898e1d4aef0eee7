"""From log-probabilities of options to scores and answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.errors import SelectionError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.score_response import score_response
from tracker.ingest.measurement import KNOWN_METRICS
from tracker.ingest.resolve.prompt_texts import list_accepted_answers
from tracker.option_labels import option_name

FINITE = st.floats(-60, 0)
WORD = st.text("abcdefgh ", min_size=1, max_size=9).filter(lambda text: text.strip())


def prompt(options: Any = ("A", "B", "C"), gold: int | None = 1, **more: Any) -> RenderedPrompt:
    return RenderedPrompt(prompt_id=7, question="Which?", options=tuple(options), correct_option=gold, **more)


def weighed(logprobs: Any, **more: Any) -> Response:
    return Response(prompt_id=7, logprobs=np.array(logprobs, dtype=np.float64), **more)


def _without_mass(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in scores.items() if name != "label_probability"}


@st.composite
def compared(draw: st.DrawFn) -> tuple[RenderedPrompt, Response]:
    options = draw(st.lists(WORD, min_size=2, max_size=6, unique_by=str.strip))
    logprobs = draw(st.lists(FINITE | st.just(-math.inf), min_size=len(options), max_size=len(options)))
    gold = draw(st.integers(0, len(options) - 1))
    return prompt(options, gold), weighed(logprobs)


def plainly(logprobs: list[float], options: tuple[str, ...], gold: int) -> dict[str, float] | None:
    """The slow, obvious version: one option after the other, exact arithmetic of Python."""
    if all(logprob == -math.inf for logprob in logprobs):
        return None
    best = norm = 0
    for place, logprobs_i in enumerate(logprobs):
        if logprobs_i > logprobs[best]:
            best = place
        if logprobs_i / len(options[place]) > logprobs[norm] / len(options[norm]):
            norm = place
    largest = max(logprobs)
    weights = [math.exp(logprob - largest) for logprob in logprobs]
    return {
        "acc": float(best == gold),
        "acc_norm": float(norm == gold),
        "gold_probability_likelihoods": weights[gold] / math.fsum(weights),
    }


class TestAgainstReference:
    @given(compared())
    @settings(max_examples=150)
    def test_log_likelihoods_are_scored_as_one_option_after_the_other(
        self, pair: tuple[RenderedPrompt, Response]
    ) -> None:
        q, response = pair
        assert response.logprobs is not None
        scored = score_response(q, response, method="loglikelihood")
        expected = plainly(response.logprobs.tolist(), q.options, q.correct_option or 0)
        if expected is None:
            assert not scored.scores
            assert [answer.status for answer in scored.answers] == ["error"]
        else:
            assert scored.scores == pytest.approx(expected, abs=1e-12)

    def test_letters_by_hand(self) -> None:
        scored = score_response(prompt(), weighed([math.log(0.1), math.log(0.3), math.log(0.1)]), method="letters")
        assert scored.scores == pytest.approx(
            {"accuracy": 1.0, "gold_probability_letters": 0.6, "label_probability": 0.5}
        )
        (answer,) = scored.answers
        assert (answer.text, answer.extraction, answer.status) == ("B", "", "ok")
        assert answer.probability == pytest.approx(0.6)
        assert (scored.prompt_id, scored.trial) == (7, 0)

    def test_a_long_option_gains_by_its_length(self) -> None:
        scored = score_response(prompt(("no", "certainly"), 1), weighed([-4.0, -5.0]), method="loglikelihood")
        assert (scored.scores["acc"], scored.scores["acc_norm"]) == (0.0, 1.0)
        assert [(answer.extraction, answer.text) for answer in scored.answers] == [("", "A"), ("acc_norm", "B")]
        assert sum(answer.probability or 0 for answer in scored.answers) == pytest.approx(1.0)


class TestUnlisted:
    """A server names the likeliest tokens alone; what the others have is bounded by what is left over."""

    def test_no_probability_where_unlisted_options_may_have_much(self) -> None:
        pair = prompt(gold=0)
        for share, known in ((0.04, True), (0.9, False)):
            scored = score_response(pair, weighed([-6.2, -np.inf, -np.inf], unlisted_share=share), method="letters")
            assert scored.scores["accuracy"] == 1.0
            assert ("gold_probability_letters" in scored.scores) is known
            assert ("label_probability" in scored.scores) is known
            assert scored.answers[0].text == "A"
            assert (scored.answers[0].probability is not None) is known


class TestLaws:
    @given(compared(), st.floats(-50, 50))
    @settings(max_examples=60)
    def test_a_constant_added_to_all_changes_no_choice_and_no_probability(
        self, pair: tuple[RenderedPrompt, Response], constant: float
    ) -> None:
        q, response = pair
        assert response.logprobs is not None
        rounded = np.round(response.logprobs * 8) / 8  # so that the sum is exact, and ties stay ties
        moved = weighed(rounded + round(constant * 8) / 8)
        before, after = (score_response(q, logprobs_i, method="letters") for logprobs_i in (weighed(rounded), moved))
        assert max(before.scores.get("label_probability", 0), after.scores.get("label_probability", 0)) <= 1.0
        assert _without_mass(after.scores) == pytest.approx(_without_mass(before.scores))
        assert [answer.text for answer in after.answers] == [answer.text for answer in before.answers]

    @given(compared(), st.sampled_from(["letters", "loglikelihood"]))
    @settings(max_examples=100)
    def test_an_answer_is_the_gold_answer_exactly_where_it_scores(
        self, pair: tuple[RenderedPrompt, Response], method: str
    ) -> None:
        q, response = pair
        scored = score_response(q, response, method=method)
        accepted = list_accepted_answers(q.options[q.correct_option or 0], q.options)
        names = {"letters": ["accuracy"], "loglikelihood": ["acc", "acc_norm"]}[method]
        for name, answer in zip(names, scored.answers, strict=False):
            if scored.scores:
                assert (answer.text in accepted) == (scored.scores[name] == 1.0)

    @given(compared(), st.sampled_from(["letters", "loglikelihood"]))
    @settings(max_examples=40)
    def test_every_score_is_a_known_metric_within_its_bounds(
        self, pair: tuple[RenderedPrompt, Response], method: str
    ) -> None:
        for name, score in score_response(*pair, method=method).scores.items():
            assert (KNOWN_METRICS[name].lower or 0.0) <= score <= (KNOWN_METRICS[name].upper or 0.0)


class TestDegenerate:
    def test_of_equal_options_the_first_is_chosen(self) -> None:
        scored = score_response(prompt(("ab", "cd", "ef"), 0), weighed([-2.0, -2.0, -2.0]), method="loglikelihood")
        assert (scored.scores["acc"], scored.scores["acc_norm"]) == (1.0, 1.0)

    def test_an_option_that_was_not_named_has_probability_zero(self) -> None:
        scored = score_response(prompt(), weighed([-1.0, -math.inf, -1.0]), method="letters")
        assert scored.scores["label_probability"] == pytest.approx(2 * math.exp(-1.0))
        assert _without_mass(scored.scores) == {"accuracy": 0.0, "gold_probability_letters": 0.0}
        assert scored.answers[0].probability == pytest.approx(0.5)

    @pytest.mark.parametrize("broken", [[-math.inf] * 3, [math.nan, -1.0, -1.0], [math.inf, -1.0, -1.0]])
    @pytest.mark.parametrize("method", ["letters", "loglikelihood"])
    def test_log_probabilities_without_information_are_an_error_without_scores(
        self, broken: list[float], method: str
    ) -> None:
        scored = score_response(prompt(), weighed(broken), method=method)
        assert not scored.scores
        assert [(answer.text, answer.status) for answer in scored.answers] == [(None, "error")]

    def test_an_empty_option_counts_one_character(self) -> None:
        scored = score_response(prompt(("", "ab"), 0), weighed([-1.5, -2.0]), method="loglikelihood")
        assert (scored.scores["acc"], scored.scores["acc_norm"]) == (1.0, 0.0)

    def test_without_a_gold_answer_there_are_answers_and_no_scores(self) -> None:
        scored = score_response(prompt(gold=None), weighed([-1.0, -2.0, -3.0]), method="letters")
        assert not scored.scores
        assert scored.answers[0].text == "A"

    def test_a_reply_with_an_error_has_no_scores(self) -> None:
        scored = score_response(prompt(), Response(prompt_id=7, trial=2, error="too long"), method="letters")
        assert (scored.trial, dict(scored.scores), scored.answers[0].status) == (2, {}, "error")

    def test_a_text_where_log_likelihoods_are_due_is_an_error(self) -> None:
        assert not score_response(prompt(), Response(prompt_id=7, text="B"), method="loglikelihood").scores


class TestNames:
    def test_the_name_of_an_option_is_its_letter(self) -> None:
        assert [option_name(place, ["one", "two"]) for place in (0, 1)] == ["A", "B"]

    def test_the_name_of_an_option_is_its_text_where_texts_are_letters(self) -> None:
        assert option_name(0, ["B", "A"]) == "B"

    def test_the_name_of_an_option_beyond_z_is_its_text(self) -> None:
        choices = [f"option {n}" for n in range(28)]
        assert (option_name(25, choices), option_name(26, choices)) == ("Z", "option 26")

    def test_digits_as_labels_do_not_change_what_is_stored(self) -> None:
        scored = score_response(
            prompt(("1", "2", "3")), weighed([-3.0, -1.0, -2.0]), method="letters", choices=["x", "y", "z"]
        )
        assert scored.answers[0].text == "B"


class TestErrors:
    def test_an_unknown_method_is_refused_with_those_known(self) -> None:
        with pytest.raises(SelectionError, match="letters, loglikelihood, generation"):
            score_response(prompt(), weighed([-1.0, -1.0, -1.0]), method="guessing")
