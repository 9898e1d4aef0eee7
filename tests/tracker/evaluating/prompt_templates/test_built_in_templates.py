"""Every template that is at hand says, letter by letter, what its source prints."""

from __future__ import annotations

import pytest
from prompt_tables import make_prompts

from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.prompt_templates.rendering import render_prompts
from tracker.evaluating.prompt_templates.template import list_built_in_templates, load_template
from tracker.queries.prompts import PromptTexts

FIVE = make_prompts(
    ["Where do fish sleep?", "What is wet?"],
    [["bed", "sea", "sky", "car", "hat"], ["sand", "rain", "dust", "salt", "wood"]],
    answers=["B", "rain"],
    splits=["test", "train"],
    tasks=["marine_biology_basics", "marine_biology_basics"],
)
ANLI = make_prompts(
    ["Ann sings.\nAnn is mute."] * 2,
    [["True", "Neither", "False"]] * 2,
    answers=["C", "A"],
    details=[
        {"premise": "Ann sings.", "hypothesis": "Ann is mute.", "reason": "one cannot be both"},
        {"premise": "Bob runs.", "hypothesis": "Bob moves."},
    ],
)
HELLASWAG = make_prompts(
    ["A man holds a rope. He"],
    [["lets go.", "eats it.", "sings.", "is a rope."]],
    details=[{"activity_label": "Climbing", "ctx": "A man holds a rope. He"}],
)
NEWS = make_prompts(["It rained.\nPeople got wet."], [None], answers=["Rain wets people."])

FIGURE_6 = """\
Given the following context: Ann sings.
Question: Ann is mute.
True, False or Neither?
The answer is:"""
FIGURE_7 = """\
### System: You are an AI assistant. Provide a detailed answer so user do not need to search outside to understand the answer.
### User: Category: Climbing
Text: A man holds a rope. He
Completion options:
(1) lets go.
(2) eats it.
(3) sings.
(4) is a rope.
### Assistant: The most likely text completion is:"""  # noqa: E501  the line of the figure
FIGURE_8 = """\
Question: Where do fish sleep?
Answer options:
(A) bed
(B) sea
(C) sky
(D) car
(E) hat
The answer is:"""
FIGURE_9 = """\
### Article:
It rained.
People got wet.
### Summary:"""
LETTERS = "Where do fish sleep?\nA. bed\nB. sea\nC. sky\nD. car\nE. hat\nAnswer:"
SUBJECT = "The following are multiple choice questions (with answers) about  marine biology basics.\n\n"


def render(name: str, prompts: PromptTexts, **options: object) -> RenderedPrompt:
    return render_prompts(prompts, [0], load_template(name), **options).prompts[0]


class TestAgainstReference:
    @pytest.mark.parametrize(
        ("name", "prompts", "text", "options", "gold"),
        [
            ("anli", ANLI, FIGURE_6, ("True", "Neither", "False"), 2),
            ("hellaswag", HELLASWAG, FIGURE_7, ("1", "2", "3", "4"), 0),
            ("commonsense_qa", FIVE, FIGURE_8, tuple("ABCDE"), 1),
            ("cnn_dailymail", NEWS, FIGURE_9, (), None),
            ("smart", FIVE, SUBJECT + LETTERS, tuple("ABCDE"), 1),
            ("multiple_choice", FIVE, LETTERS, tuple("ABCDE"), 1),
            ("cloze", FIVE, "Question: Where do fish sleep?\nAnswer:", ("bed", "sea", "sky", "car", "hat"), 1),
            ("written", NEWS, "It rained.\nPeople got wet.\nAnswer:", (), None),
        ],
    )
    def test_it_prints_what_its_source_prints(
        self, name: str, prompts: PromptTexts, text: str, options: tuple[str, ...], gold: int | None
    ) -> None:
        question = render(name, prompts)
        assert (question.text(), question.options, question.correct_option) == (text, options, gold)

    @pytest.mark.parametrize(
        ("name", "prompts", "text"),
        [
            ("anli", ANLI, "Given the following context: \nQuestion: \nTrue, False or Neither?\nThe answer is:"),
            ("hellaswag", HELLASWAG, FIGURE_7.replace("Climbing", "").replace("A man holds a rope. He", "")),
            ("commonsense_qa", FIVE, FIGURE_8.replace("Where do fish sleep?", "")),
            ("smart", FIVE, SUBJECT + LETTERS.replace("Where do fish sleep?", " ")),
            ("multiple_choice", FIVE, LETTERS.replace("Where do fish sleep?", "")),
            ("cloze", FIVE, "Question: \nAnswer:"),
        ],
    )
    def test_without_its_question_the_rest_stays_as_it_was(self, name: str, prompts: PromptTexts, text: str) -> None:
        assert render(name, prompts, answer_only=True).text() == text
        assert render(name, prompts, answer_only=True).options == render(name, prompts).options

    def test_worked_examples_stand_between_header_and_question_with_their_answers(self) -> None:
        example = "What is wet?\nA. sand\nB. rain\nC. dust\nD. salt\nE. wood\nAnswer: B\n\n"
        assert render("smart", FIVE, few_shot=1, few_shot_split="train").text() == SUBJECT + example + LETTERS

    def test_a_worked_example_of_a_cloze_ends_with_the_text_of_its_option(self) -> None:
        expected = "Question: What is wet?\nAnswer: rain\n\nQuestion: Where do fish sleep?\nAnswer:"
        assert render("cloze", FIVE, few_shot=1, few_shot_split="train").text() == expected

    def test_a_worked_summary_begins_on_its_own_line(self) -> None:
        two = make_prompts(
            ["It rained.", "It snowed."], [None] * 2, answers=["Wet.", "Cold."], splits=["test", "train"]
        )
        expected = "### Article:\nIt snowed.\n### Summary:\nCold.\n\n### Article:\nIt rained.\n### Summary:"
        assert render("cnn_dailymail", two, few_shot=1, few_shot_split="train").text() == expected

    def test_smart_without_a_task_speaks_of_one_question(self) -> None:
        question = render("smart", make_prompts(["Why?"]))
        assert question.text() == "The following is a multiple choice question.\n\nWhy?\nA. one\nB. two\nAnswer:"


class TestSettings:
    def test_there_are_these(self) -> None:
        assert list_built_in_templates() == (
            "anli", "cloze", "cnn_dailymail", "commonsense_qa", "hellaswag", "multiple_choice", "smart", "written",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "method"),
        [("anli", "letters"), ("smart", "letters"), ("cloze", "loglikelihood"), ("cnn_dailymail", "generation")],
    )
    def test_the_kind_of_answer_decides_the_method(self, name: str, method: str) -> None:
        assert load_template(name).method == method

    def test_settings_record_a_whole_template(self) -> None:
        template = load_template("smart")
        recorded = template.as_settings()
        assert recorded["source"] == template.source
        assert "multiple choice question" in recorded["source"]
        assert {name: recorded[name] for name in ("name", "labels", "answer", "blank", "isolated_labels", "stop")} == {
            "name": "smart", "labels": "letters", "answer": "label", "blank": " ",
            "isolated_labels": True, "stop": ["\n\n"],
        }  # fmt: skip

    def test_other_labels_can_be_chosen(self) -> None:
        expected = render_prompts(FIVE, [0], load_template("multiple_choice", labels="digits")).prompts[0]
        assert expected.options == tuple("12345")
        assert "\n2. sea\n" in expected.question
