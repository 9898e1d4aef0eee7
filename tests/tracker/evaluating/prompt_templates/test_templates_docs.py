"""The page on templates says what there is, and its examples are templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prompt_tables import make_prompts, template

from tracker.evaluating.prompt_templates.rendering import render_prompts
from tracker.evaluating.prompt_templates.template import list_built_in_templates
from tracker.evaluating.prompt_templates.template_file import NAMES, SETTINGS

PAGE = (Path(__file__).parents[4] / "docs/reference/templates.md").read_text()
EXAMPLES = re.findall(r"```jinja\n(.*?)```", PAGE, flags=re.DOTALL)


def first_cells(head: str) -> list[str]:
    """Words in code letters in the first column of the table that begins so."""
    rows = PAGE[PAGE.index(f"| {head} |") :].split("\n\n")[0].splitlines()[2:]
    return [word for row in rows for word in re.findall(r"`(\w+)`", row.split("|")[1])]


class TestPage:
    def test_every_built_in_template_is_there(self) -> None:
        assert sorted(first_cells("`--template`")) == sorted(list_built_in_templates())

    def test_every_setting_is_there(self) -> None:
        assert first_cells("setting") == list(SETTINGS)

    def test_every_name_is_there(self) -> None:
        assert set(first_cells("name")) == {name for block in NAMES.values() for name in block}

    @pytest.mark.parametrize(
        ("example", "text", "options"),
        [
            (0, "Which is right? Why?\n1) sun\n2) rain\nNumber:", ("1", "2")),
            (1, "You are asked about the sky.\nIt shines.\nQ: Why?\nA:", ("sun", "rain")),
        ],
    )
    def test_its_examples_render_as_shown(
        self, tmp_path: Path, example: int, text: str, options: tuple[str, ...]
    ) -> None:
        prompts = make_prompts(["Why?"], [["sun", "rain"]], tasks=["the_sky"], details=[{"context": "It shines."}])
        question = render_prompts(prompts, [0], template(tmp_path, EXAMPLES[example])).prompts[0]
        assert (question.text(), question.options) == (text, options)
