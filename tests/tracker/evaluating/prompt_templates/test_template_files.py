"""Templates of one's own: what a file may say, and what is said of a file that may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_tables import make_prompts, template
from source_tree import ROOT

from tracker.errors import BadInputError, NotFoundError, SelectionError
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt
from tracker.evaluating.prompt_templates.rendering import render_prompts
from tracker.evaluating.prompt_templates.template import default_template, load_template
from tracker.queries.prompts import PromptTexts

PROMPT = make_prompts(
    ["Why?"],
    [["sun", "rain"]],
    tasks=["high_weather"],
    details=[
        {"source": "a book", "year": 1999, "pages": [3, 4], "by": {"name": "Ann"}, "items": "shadowed", "no": None}
    ],
)


def render(tmp_path: Path, source: str, prompts: PromptTexts = PROMPT, **options: object) -> RenderedPrompt:
    return render_prompts(prompts, [0], template(tmp_path, source), **options).prompts[0]


class TestFiles:
    def test_a_few_lines_without_blocks_are_a_template(self, tmp_path: Path) -> None:
        lines = ["{{ question }}", "{% for c in choices %}", "{{ c.label }}) {{ c.text }}", "{% endfor %}", "=>\n"]
        source = '{% set labels = "digits" %}\n\n' + "\n".join(lines)
        question = render(tmp_path, source)
        assert question.text() == "Why?\n1) sun\n2) rain\n=>"
        assert question.options == ("1", "2")

    def test_a_block_is_the_lines_between_its_tags(self, tmp_path: Path) -> None:
        source = "{% block header %}\nHead.\n\n{% endblock %}\n\n{% block question %}\n\n  Q\n{% endblock %}\n"
        question = render(tmp_path, source)
        assert (question.header, question.question) == ("Head.\n", "\n  Q")

    def test_tags_that_stand_alone_leave_nothing_behind_though_they_are_indented(self, tmp_path: Path) -> None:
        source = (
            "{{ question }}\n{% for c in choices %}\n  {% if c.label %}\n- {{ c }}\n  {% endif %}\n{% endfor %}\nend"
        )
        assert render(tmp_path, source).text() == "Why?\n- sun\n- rain\nend"

    @pytest.mark.parametrize(
        ("source", "has_options"),
        [("{{ question }}", False), ("{{ question }}{{ choices | join }}", True),
         ("{% block question %}x{% endblock %}{% block answer %}{{ label }}{% endblock %}", True)],
    )  # fmt: skip
    def test_who_writes_may_be_shown_options(self, tmp_path: Path, source: str, has_options: bool) -> None:
        assert template(tmp_path, '{% set answer = "written" %}' + source).has_options is has_options

    def test_every_setting_is_accepted(self, tmp_path: Path) -> None:
        settings = 'labels="words" answer="written" join="\\t" separator="##" blank="?" isolated_labels=true '
        settings += 'stop=["."] max_tokens=7'
        source = "".join(f"{{% set {setting} %}}\n" for setting in settings.split()) + "{{ choices | join('/') }}"
        loaded = template(tmp_path, source)
        recorded = loaded.as_settings()
        assert [recorded[setting.split("=")[0]] for setting in settings.split()] == [
            "words", "written", "\t", "##", "?", True, ["."], 7,
        ]  # fmt: skip
        assert (loaded.name, loaded.source) == ("own.jinja", source)

    def test_written_answers_end_at_the_separator_by_default(self, tmp_path: Path) -> None:
        start = '{% set answer = "written" %}{% set separator = "%%" %}'
        assert template(tmp_path, start + "x").stop == ("%%",)
        assert template(tmp_path, start + "{% set stop = [] %}x").stop == ()

    def test_the_block_answer_renders_options(self, tmp_path: Path) -> None:
        source = "{% block question %}Q{% endblock %}{% block answer %}({{ label }}) {{ answer }}{% endblock %}"
        assert render(tmp_path, source).options == ("(A) sun", "(B) rain")

    def test_further_fields_are_had_by_name_whatever_their_name(self, tmp_path: Path) -> None:
        source = (
            "{{ details.source }}|{{ details.year }}|{{ details.pages[1] }}|{{ details.by.name }}|{{ details.items }}"
        )
        assert render(tmp_path, source).text() == "a book|1999|4|Ann|shadowed"
        assert render(tmp_path, source, answer_only=True).text() == "||||"

    def test_task_words_are_a_task_without_underscores(self, tmp_path: Path) -> None:
        assert render(tmp_path, "{{ task }}: {{ task_words }}").text() == "high_weather: high weather"

    def test_a_field_that_may_be_missing_can_be_tested_for(self, tmp_path: Path) -> None:
        source = "{{ details.hint is defined }} {{ 'source' in details }} {% if details.no %}no{% endif %}"
        assert render(tmp_path, source).text() == "False True "

    def test_line_ends_of_another_system_change_neither_text_nor_digest(self, tmp_path: Path) -> None:
        plain = template(tmp_path, "{{ question }}\nAnswer:\n")
        (tmp_path / "other.jinja").write_bytes(b"\xef\xbb\xbf{{ question }}\r\nAnswer:\r\n")
        second = load_template(str(tmp_path / "other.jinja"))
        assert second.digest == plain.digest
        assert render_prompts(PROMPT, [0], second).prompts[0].text() == "Why?\nAnswer:"

    def test_another_word_is_another_digest(self, tmp_path: Path) -> None:
        assert template(tmp_path, "{{ question }} a").digest != template(tmp_path, "{{ question }} b").digest

    def test_beyond_the_alphabet_labels_are_numbers(self, tmp_path: Path) -> None:
        many = make_prompts(["Why?"], [[f"option {i}" for i in range(28)]])
        assert render(tmp_path, "{{ question }}", many).options[24:] == ("Y", "Z", "27", "28")


class TestDefault:
    @pytest.mark.parametrize(
        ("choices", "name"),
        [([["a"], ["b"]], "multiple_choice"), ([["a"], None], "multiple_choice"), ([[], None], "written")],
    )
    def test_prompts_with_options_get_a_choice(self, choices: list[list[str] | None], name: str) -> None:
        assert default_template(choices).name == name

    def test_without_prompts_answers_are_written(self) -> None:
        assert default_template([]).name == "written"


class TestErrors:
    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("x\n{{ qestion }}", "line 2: unknown name 'qestion' in the block question. Did you mean 'question'?"),
            ("{{ premise }}", "Further fields of a prompt are details.NAME"),
            ("x\n{% set lables = 'digits' %}", "line 2: unknown setting 'lables'. Did you mean 'labels'?"),
            ("{% set labels = 'roman' %}x", "line 1: labels must be one of letters, digits, words"),
            ("{% set join = question %}x", "line 1: join must be a text"),
            ("{% set stop = '.' %}x", "stop must be a list of texts"),
            ("{% set max_tokens = true %}x", "max_tokens must be an integer above 0"),
            ("{% set max_tokens = 0 %}x", "max_tokens must be an integer above 0"),
            ("x\n\n{% if %}", "line 3: "),
            ("{% for c in choices %}\nx", "line 2: Unexpected end of template"),
            ("{{ question | shout }}", "No filter named 'shout'"),
            ("{{ choices | random }}", "No filter named 'random'"),
            ("{% block qestion %}x{% endblock %}", "unknown block 'qestion'. Did you mean 'question'?"),
            ("{% block question %}x{% endblock %}{% block question %}y{% endblock %}", "'question' is defined twice"),
            ("\n\nhello{% block question %}x{% endblock %}", "line 3: this text is outside of the blocks question"),
            ("{% block header %}{{ question }}{% endblock %}{% block question %}x{% endblock %}",
             "question is available in the block question, not in the block header"),
            ("{{ answer }}", "answer is available in the block answer, not in the block question"),
            ("{% block question %}{% block answer %}x{% endblock %}{% endblock %}", "a nested block"),
            ("{% include 'other' %}", "cannot contain another file"),
            ("{% if task %}{% import 'other' as o %}{% endif %}", "cannot contain another file"),
            ("{% extends 'other' %}", "cannot contain another file"),
            ("{% if task %}" * 2_000 + "{% endif %}" * 2_000, "nested too deeply"),
            ("{{ " + "(" * 5_000, "nested too deeply"),
            (" \n", "the template is empty"),
            ("{% block header %}x{% endblock %}", "the template is empty"),
        ],
    )  # fmt: skip
    def test_what_is_misspelt_is_found_before_anything_is_rendered(
        self, tmp_path: Path, source: str, words: str
    ) -> None:
        with pytest.raises(BadInputError) as error:
            template(tmp_path, source)
        assert str(error.value).startswith(f"{tmp_path / 'own.jinja'}: ")
        assert words in str(error.value)

    def test_messages_are_those_of_the_page(self, tmp_path: Path) -> None:
        page = (ROOT / "docs/reference/templates.md").read_text()
        prompts = make_prompts(["Why?"], [["sun", "rain"]], tasks=["R1"], details=[{"reason": "x", "uid": "u"}])
        with pytest.raises(BadInputError) as misspelt:
            template(tmp_path, "a\nb\n{{ qestion }}")
        with pytest.raises(BadInputError) as missing:
            render(tmp_path, "a\n{{ details.premise }}", prompts)
        first = str(misspelt.value).replace(str(tmp_path / "own.jinja"), "mine.jinja")
        second = str(missing.value).replace(str(tmp_path / "own.jinja"), "mine.jinja").replace("'p0'", "'17'")
        assert f"\n{first.partition('?')[0]}? …\n" in page
        assert f"\n{second}\n" in page

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("a\n{{ details.premise }}",
             "line 2: prompt 'p0' of task 'high_weather': the prompt has no further field 'premise'. Its fields: by, "),
            ("{{ details.no }}", "line 1: prompt 'p0' of task 'high_weather': a printed field is null"),
            ("{{ choices }}", "a list cannot be printed"),
            ("{{ details }}", "further fields cannot be printed"),
            ("{{ question.upper }}", "add parentheses"),
            ("{% for field in details %}{{ field }}{% endfor %}", "further fields are accessible by name only"),
            ("a\n\n{{ 1 / 0 }}", "line 3: prompt 'p0' of task 'high_weather': division by zero"),
            ("{{ question.__class__ }}", "unsafe"),
            ("{{ range(1000000000) | list }}", "Range too big"),
        ],
    )  # fmt: skip
    def test_what_a_prompt_does_not_have_names_line_and_prompt(self, tmp_path: Path, source: str, words: str) -> None:
        with pytest.raises(BadInputError) as error:
            render(tmp_path, source)
        assert words in str(error.value)

    def test_what_cannot_be_computed_without_the_question_is_an_error_with_the_reason(self, tmp_path: Path) -> None:
        source = "{% if details.year > 1900 %}new{% endif %}"
        assert render(tmp_path, source).text() == "new"
        with pytest.raises(BadInputError, match="The question and further fields are withheld here"):
            render(tmp_path, source, answer_only=True)

    def test_an_unknown_name_is_answered_with_those_there_are(self) -> None:
        with pytest.raises(NotFoundError, match=r"No template 'anly'\. Did you mean 'anli'\? A custom template is"):
            load_template("anly")

    @pytest.mark.parametrize("name", ["none.jinja", "./none", "folder/"])
    def test_a_missing_file_is_an_error(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(BadInputError, match="no such file"):
            load_template(name)

    def test_a_file_that_is_no_text_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "own.jinja").write_bytes(b"ab\xff")
        with pytest.raises(BadInputError, match=r"not UTF-8 text \(byte 3\)"):
            load_template("own.jinja")

    def test_unknown_labels_are_answered_with_those_there_are(self) -> None:
        with pytest.raises(SelectionError, match=r"No labels 'roman'\. Known: letters, digits, words"):
            load_template("smart", labels="roman")
