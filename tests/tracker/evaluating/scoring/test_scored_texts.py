"""From what a model wrote to scores and answers."""

from __future__ import annotations

import re
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.errors import MissingExtraError, SelectionError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.scoring.options import find_option
from tracker.evaluating.scoring.rules import PRESETS, ScoringRules, choose_rules
from tracker.evaluating.scoring.score_response import METHODS, score_response
from tracker.evaluating.scoring.written_answers import (
    IGNORABLE,
    METRICS,
    check_rules,
    exact_match,
    extract_answer,
    f1,
    normalize,
)
from tracker.ingest.measurement import KNOWN_METRICS

LETTERS = ("A", "B", "C", "D")
TOKENS = st.lists(st.sampled_from(["w1", "w2", "w3", "w4"]), max_size=7)


def score_answer(text: str, references: Any = ("Paris",), **more: Any) -> Any:
    prompt = RenderedPrompt(prompt_id=1, question="Where?", references=tuple(references))
    return score_response(prompt, Response(prompt_id=1, text=text), method="generation", rules=ScoringRules(**more))


def score(text: str, references: Any = ("Paris",), metric: str = "exact_match", **more: Any) -> float:
    return float(score_answer(text, references, metrics=(metric,), **more).scores[metric])


def rouge_plainly(kind: str, answer_words: list[str], reference: list[str]) -> float:
    """ROUGE by its definition: sequences counted one by one, the common subsequence by trying all."""
    if kind == "rougeL":
        parts = [
            chosen
            for n in range(len(answer_words), 0, -1)
            for chosen in combinations(answer_words, n)
            if _is_within(chosen, reference)
        ]
        n_shared, n_words, n_reference = len(parts[0]) if parts else 0, len(answer_words), len(reference)
    else:
        n = int(kind[-1])
        answer_grams, reference_grams = (
            [tuple(sequence[at : at + n]) for at in range(len(sequence) - n + 1)]
            for sequence in (answer_words, reference)
        )
        n_words, n_reference, n_shared = len(answer_grams), len(reference_grams), 0
        for gram in answer_grams:
            if gram in reference_grams:
                reference_grams.remove(gram)
                n_shared += 1
    return 2 * n_shared / (n_words + n_reference) if n_shared else 0.0


def _is_within(chosen: tuple[str, ...], words: list[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in chosen)


class TestAgainstReference:
    @given(TOKENS, st.lists(TOKENS, min_size=1, max_size=3), st.sampled_from(["rouge1", "rouge2", "rougeL"]))
    @settings(max_examples=80)
    def test_rouge_is_as_defined_for_the_nearest_reference(
        self, answer_words: list[str], references: list[list[str]], kind: str
    ) -> None:
        expected = max(rouge_plainly(kind, answer_words, reference) for reference in references)
        text = " ".join(answer_words) or "-"
        assert score(text, [" ".join(reference) for reference in references], kind) == pytest.approx(expected)

    def test_words_are_stemmed(self) -> None:
        assert score("He was running.", ["he was runs"], "rouge1") == pytest.approx(1.0)

    @given(TOKENS, TOKENS)
    @settings(max_examples=60)
    def test_f1_counts_shared_words_one_by_one(self, answer_words: list[str], reference: list[str]) -> None:
        expected = rouge_plainly("rouge1", answer_words, reference) if answer_words or reference else 1.0
        assert f1(" ".join(answer_words), [" ".join(reference)]) == pytest.approx(expected)


class TestExactMatch:
    def test_surrounding_space_never_counts(self) -> None:
        assert score("  Paris\n") == 1.0

    def test_any_reference_will_do(self) -> None:
        assert score("Lutetia", ["Paris", "Lutetia"]) == 1.0

    @pytest.mark.parametrize("answer_words", ["paris", "Paris.", "the Paris", "Pariss", "P aris"])
    def test_nothing_else_is_overlooked_by_default(self, answer_words: str) -> None:
        assert score(answer_words) == 0.0

    @pytest.mark.parametrize(
        ("answer_words", "ignored"),
        [("pARIS", ["case"]), ("«Paris!»", ["punctuation"]), ("the Paris", ["articles"]),
         ("The PARIS, ...", ["case", "punctuation", "articles"])],
    )  # fmt: skip
    def test_what_is_to_be_ignored_is(self, answer_words: str, ignored: list[str]) -> None:
        assert score(answer_words, ignore=ignored) == 1.0

    @pytest.mark.parametrize(
        ("answer_words", "reference", "equal"),
        [("1,000", "1000", True), ("$1,000.00", "1000", True), ("-5", "-5.0", True), ("-0", "0", True),
         ("0.50", "0.5", True), ("1,00", "100", False), ("10", "1", False), ("100", "1", False), ("1.5", "15", False),
         ("12 cats", "12", False)],
    )  # fmt: skip
    def test_numbers_are_compared_as_numbers_where_their_form_is_ignored(
        self, answer_words: str, reference: str, equal: bool
    ) -> None:
        assert exact_match(answer_words, [reference], ["number-format"]) == float(equal)

    @pytest.mark.parametrize(("answer_words", "reference"), [("1.5", "15"), ("-5", "5"), ("3-4", "34")])
    def test_ignoring_punctuation_leaves_numbers_what_they_are(self, answer_words: str, reference: str) -> None:
        assert exact_match(answer_words, [reference], ["punctuation"]) == 0.0

    @given(st.text(max_size=20), st.sets(st.sampled_from(["case", "punctuation", "number-format"])))
    @settings(max_examples=100)
    def test_what_is_normalised_stays_as_it_is(self, text: str, ignored: set[str]) -> None:
        once = normalize(text, ignored)
        assert exact_match(text, [text], ignored) == 1.0
        assert normalize(once, ignored - {"punctuation"}) == once

    def test_an_empty_answer_is_empty_and_wrong(self) -> None:
        scored = score_answer(" \n")
        assert dict(scored.scores) == {"exact_match": 0.0}
        assert [(answer.text, answer.status) for answer in scored.answers] == [(None, "empty")]

    def test_without_references_there_are_answers_and_no_scores(self) -> None:
        scored = score_answer("Paris", ())
        assert not scored.scores
        assert scored.answers[0].text == "Paris"


class TestExtraction:
    @pytest.mark.parametrize(
        ("pattern", "text", "scored"),
        [(r"#### (\d+)", "#### 3 ... #### 42", "42"), (r"\d+", "3 then 42.", "42"), (r"(\d+)|none", "7, none", None),
         (r"x(\d)|y(\d)", "x1 y2", "2"), (r"is (\w*)", "it is ", None), (r"(?s)<a>(.*?)</a>", "<a>\nb\n</a>", "b")],
    )  # fmt: skip
    def test_the_last_match_counts_and_of_it_the_first_group_that_takes_part(
        self, pattern: str, text: str, scored: str | None
    ) -> None:
        assert extract_answer(text, pattern) == scored

    def test_what_was_found_is_scored_and_both_are_kept(self) -> None:
        scored = score_answer("I think: Paris!", extract=r": (\w+)")
        assert dict(scored.scores) == {"exact_match": 1.0}
        assert [(answer.extraction, answer.text) for answer in scored.answers] == [
            ("", "I think: Paris!"),
            ("regex", "Paris"),
        ]

    def test_nothing_found_is_empty_and_scores_zero(self) -> None:
        scored = score_answer("Paris", extract=r"#### (\w+)", metrics=("exact_match", "rouge1"))
        assert dict(scored.scores) == {"exact_match": 0.0, "rouge1": 0.0}
        assert [answer.status for answer in scored.answers] == ["ok", "empty"]


class TestReferences:
    SOLUTION = "Half of 96 is 48.\n48 + 96 = 144\n#### 1,144"

    def test_a_pattern_is_applied_to_both_sides(self) -> None:
        rules = {"extract": r"#### (-?[\d,.]+)", "ignore": ("number-format",)}
        assert score(self.SOLUTION, [self.SOLUTION], **rules) == 1.0
        assert score("So #### 1144", [self.SOLUTION], **rules) == 1.0
        assert score("So #### 144", [self.SOLUTION], **rules) == 0.0
        assert score("The answer is A", ["A"], extract=r"answer is ([A-D])") == 1.0, "no match: the whole reference"

    def test_the_reference_can_have_a_pattern_of_its_own_or_none(self) -> None:
        assert score("It is 7.", ["x=7"], extract=r"is (\d)", extract_reference=r"=(\d)") == 1.0
        assert score("b12", ["b12"], extract=r"\d+") == 1.0
        assert score("b12", ["b12"], extract=r"\d+", extract_reference="none") == 0.0

    @pytest.mark.parametrize(
        ("preset", "right", "wrong", "reference"),
        [
            ("gsm8k", "#### $1,144.00", "1144 #### 7", SOLUTION),
            ("last-number", "So it is 1144.", "1144 of 7", SOLUTION),
            ("last-number", "So it is -3", "3", "-3"),
        ],
    )
    def test_presets_score_what_they_are_named_for(self, preset: str, right: str, wrong: str, reference: str) -> None:
        prompt = RenderedPrompt(prompt_id=1, question="How many?", references=(reference,))
        for text, value in ((right, 1.0), (reference, 1.0), (wrong, 0.0)):
            scored = score_response(
                prompt, Response(prompt_id=1, text=text), method="generation", rules=PRESETS[preset]
            )
            assert dict(scored.scores) == {"exact_match": value}, text

    def test_options_replace_parts_of_a_preset(self) -> None:
        rules = choose_rules("gsm8k", ScoringRules(metrics=("f1",), extract="x"))
        assert rules == ScoringRules(metrics=("f1",), extract="x", ignore=("number-format",))
        assert choose_rules(None, rules) == rules


class TestFormulas:
    @pytest.mark.parametrize(
        ("answer", "reference", "value"),
        [(r"\frac{1}{2}", "0.5", 1.0), ("1/2", r"\dfrac12", 1.0), ("1 + x", "x+1", 1.0), ("$1,000", "1000", 1.0),
         ("It is 72.", "72", 1.0), ("It is 72.", "73", 0.0), ("cat", "act", 0.0), ("", "3", 0.0)],
    )  # fmt: skip
    def test_equal_numbers_and_formulas_are_equal(self, answer: str, reference: str, value: float) -> None:
        pytest.importorskip("math_verify", reason="the extra math is not installed")
        assert score(answer, [reference], "math_verify") == value

    def test_the_preset_for_math_reads_the_last_box(self) -> None:
        pytest.importorskip("math_verify", reason="the extra math is not installed")
        prompt = RenderedPrompt(prompt_id=1, question="?", references=(r"So $x=\boxed{\frac{1}{2}}$.",))
        response = Response(prompt_id=1, text=r"\boxed{3}? No: \boxed{0.5}")
        scored = score_response(prompt, response, method="generation", rules=PRESETS["boxed"])
        assert dict(scored.scores) == {"math_verify": 1.0}

    def test_without_the_package_the_error_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tracker.evaluating.scoring import math_equality

        math_equality._load.cache_clear()
        monkeypatch.setitem(sys.modules, "math_verify", None)
        with pytest.raises(MissingExtraError, match=r"pip install '.\[math\]'"):
            check_rules(PRESETS["boxed"])


class TestOptionsInText:
    @pytest.mark.parametrize(
        ("text", "place"),
        [("B", 1), (" b\n", 1), ("(C)", 2), ("**D**", 3), ("B. Because of the rain", 1), ("C) rain", 2),
         ("The answer is D.", 3), ("Answer: (C)", 2), ("A is tempting. The answer is: **B**", 1),
         ("answer is A, no, the answer is C", 2), ("It must be C, I think", 2), ("I would take option B", 1),
         ("The correct answer is option D", 3), ("rain", 0), ("Snow.", 1)],
    )  # fmt: skip
    def test_the_option_that_is_named_is_found(self, text: str, place: int) -> None:
        assert find_option(text, LETTERS, ["rain", "snow", "hail", "fog"]) == place

    @pytest.mark.parametrize(
        "text", ["", "...", "A good question", "B or C", "neither", "I like A cat", "Because", "AB", "E", "3.B7"]
    )
    def test_where_none_is_named_or_several_are_nothing_is_found(self, text: str) -> None:
        assert find_option(text, LETTERS, ["rain", "snow", "hail", "fog"]) is None

    @pytest.mark.parametrize("text", ["1.5 metres", "about 1.5", "the answer is 1.5", "21"])
    def test_a_digit_within_a_number_is_no_label(self, text: str) -> None:
        assert find_option(text, ["1", "2"]) is None

    def test_a_label_within_a_longer_one_is_not_named(self) -> None:
        assert find_option("It is New York City, I think", ["New York", "New York City"]) == 1
        assert find_option("New York City it is", ["New York", "New York City"]) == 1

    @pytest.mark.parametrize(("text", "place"), [("10", 9), ("1", 0), ("10. ten", 9), ("the answer is 10", 9)])
    def test_a_longer_label_goes_before_a_shorter(self, text: str, place: int) -> None:
        assert find_option(text, [str(n) for n in range(1, 11)]) == place

    @pytest.mark.parametrize(("text", "place"), [("true", 0), ("False, because", 2), ("It is neither.", 1)])
    def test_words_as_labels_are_found_in_any_letter_case(self, text: str, place: int) -> None:
        assert find_option(text, ("True", "Neither", "False")) == place

    def test_labels_that_are_empty_or_equal_find_nothing(self) -> None:
        assert find_option("the answer is x", ("", "x")) is None
        assert find_option("so yes it is", ("Yes", "yes")) is None

    @given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=3), max_size=5))
    @settings(max_examples=150)
    def test_any_text_and_labels_give_a_place_or_nothing(self, text: str, labels: list[str]) -> None:
        scored = find_option(text, labels)
        assert scored is None or 0 <= scored < len(labels)

    @pytest.mark.parametrize(("method", "metric"), [("letters", "accuracy"), ("generation", "exact_match")])
    def test_a_written_option_is_scored_without_a_probability(self, method: str, metric: str) -> None:
        prompt = RenderedPrompt(prompt_id=1, question="Which?", options=LETTERS, correct_option=1)
        scored = score_response(prompt, Response(prompt_id=1, text="B. Rain"), method=method)
        assert dict(scored.scores) == {metric: 1.0}
        assert [(answer.extraction, answer.text) for answer in scored.answers] == [("", "B"), ("text", "B. Rain")]
        assert {answer.probability for answer in scored.answers} == {None}

    def test_a_pattern_finds_the_option_within_reasoning(self) -> None:
        prompt = RenderedPrompt(prompt_id=1, question="Which?", options=LETTERS, correct_option=2)
        response = Response(prompt_id=1, text="A, B or D? No: <C>")
        rules = ScoringRules(extract=r"<(.)>")
        scored = score_response(prompt, response, method="generation", rules=rules, choices=["w", "x", "y", "z"])
        assert dict(scored.scores) == {"exact_match": 1.0}
        assert [(answer.extraction, answer.text) for answer in scored.answers] == [
            ("", "A, B or D? No: <C>"),
            ("regex", "C"),
        ]

    def test_an_option_that_cannot_be_read_off_is_empty_and_wrong(self) -> None:
        prompt = RenderedPrompt(prompt_id=1, question="Which?", options=LETTERS, correct_option=0)
        scored = score_response(prompt, Response(prompt_id=1, text="I do not know"), method="letters")
        assert dict(scored.scores) == {"accuracy": 0.0}
        assert scored.answers[0].status == "empty"


class TestErrors:
    def test_an_unknown_metric_is_refused_with_those_known(self) -> None:
        with pytest.raises(SelectionError, match="exact_match, f1, math_verify, rouge1, rouge2, rougeL"):
            check_rules(ScoringRules(metrics=("bleu",)))
        with pytest.raises(SelectionError, match="exact_match"):
            score_answer("Paris", metrics=("bleu",))

    @pytest.mark.parametrize("pattern", ["(", "[a", "*", "(?P<1>a)", "a{2,1}"])
    def test_a_pattern_that_is_none_is_refused(self, pattern: str) -> None:
        with pytest.raises(SelectionError, match="not a regular expression"):
            check_rules(ScoringRules(extract=pattern))

    def test_what_cannot_be_ignored_is_refused_with_what_can(self) -> None:
        with pytest.raises(SelectionError, match="case, punctuation, articles, number-format"):
            check_rules(ScoringRules(ignore=("accents",)))

    def test_what_is_known_is_not_refused(self) -> None:
        names = tuple(name for name in METRICS if name != "math_verify")
        check_rules(ScoringRules(metrics=names, extract=r"(\d+)", ignore=("case",)))


def test_every_metric_is_known_to_the_store_with_its_bounds() -> None:
    assert all((KNOWN_METRICS[name].lower, KNOWN_METRICS[name].upper) == (0.0, 1.0) for name in METRICS)


class TestDocument:
    DOCUMENT = (Path(__file__).parents[4] / "docs/reference/scoring.md").read_text()

    def test_metrics_and_differences_are_those_that_there_are(self) -> None:
        rows = re.findall(r"^\| (`.+?`) \|", self.DOCUMENT, re.M)
        documented = [word for row in rows for word in re.findall(r"`([^`]+)`", row) if not word.startswith("--")]
        assert documented == [*METHODS, *METRICS, *IGNORABLE]

    def test_its_example_runs_as_written(self) -> None:
        (example,) = re.findall(r"```python\n(.+?)```", self.DOCUMENT, re.S)
        scored: dict[str, Any] = {}
        exec(example, scored)
        assert scored["scored"].scores == {"exact_match": 1.0}
        assert scored["scored"].answers[1].text == "$1,000"
