"""Plans from Python, and the options of the command line that make the same."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import click
import numpy as np
import pytest

from tracker.cli.commands.evaluate import command
from tracker.errors import SelectionError
from tracker.evaluating.plan import Plan
from tracker.evaluating.plan_settings import (
    CHOICES,
    KEYWORDS,
    MIN_WHOLE_NUMBERS,
    GenerationSettings,
    LoadingSettings,
    PromptSettings,
    ServerSettings,
)

PARTS = {
    "prompts": PromptSettings,
    "generation": GenerationSettings,
    "loading": LoadingSettings,
    "server": ServerSettings,
}
FIELDS = {
    KEYWORDS.get(field.name, field.name): field
    for kind in (Plan, *PARTS.values())
    for field in fields(kind)
    if field.name not in PARTS
}
OPTIONS = {param.name: param for param in command.params if isinstance(param, click.Option)}
DIFFERENT_DEFAULTS: dict[str, Any] = {"conditions": "full", "batch_size": "auto", "metrics": ()}
"""Defaults that the command line puts into other words."""


class TestCommandLine:
    def test_every_field_of_a_plan_has_an_option_and_few_others_exist(self) -> None:
        assert set(OPTIONS) - set(FIELDS) == {"dry_run", "show_prompt", "database"}
        assert set(FIELDS) - set(OPTIONS) == {"benchmark"}

    @pytest.mark.parametrize("name", sorted(set(FIELDS) - {"benchmark", "model"}))
    def test_its_default_is_that_of_the_plan(self, name: str) -> None:
        parsed = command.make_context("evaluate", ["quiz", "--model", "m"]).params
        assert parsed[name] == DIFFERENT_DEFAULTS.get(name, FIELDS[name].default)

    @pytest.mark.parametrize("name", sorted(CHOICES))
    def test_its_words_are_those_of_the_plan(self, name: str) -> None:
        kind = OPTIONS[KEYWORDS.get(name, name)].type
        assert isinstance(kind, click.Choice)
        assert set(kind.choices) == set(CHOICES[name]) - {None}

    @pytest.mark.parametrize("name", sorted(set(MIN_WHOLE_NUMBERS) - {"batch_size"}))
    def test_its_least_number_is_that_of_the_plan(self, name: str) -> None:
        kind = OPTIONS[name].type
        assert isinstance(kind, click.IntRange)
        assert kind.min == MIN_WHOLE_NUMBERS[name]


class TestPython:
    @pytest.mark.parametrize("name", ["conditions", "metrics", "stop", "tasks", "ignore"])
    def test_of_what_may_be_several_one_may_stand_alone(self, name: str) -> None:
        word = {"conditions": "answer_only", "ignore": "case", "stop": "END"}.get(name, "rougeL")
        assert Plan.from_options("quiz", "model", **{name: word}) == Plan.from_options(
            "quiz", "model", **{name: [word]}
        )
        assert Plan.from_options("quiz", "model", **{name: [word]}) == Plan.from_options(
            "quiz", "model", **{name: (word,)}
        )

    @pytest.mark.parametrize(
        ("parsed", "words"),
        [
            ({"batch_size": 0}, "batch_size is 0; it must be an integer of at least 1."),
            ({"few_shot": "5"}, "few_shot is '5'; it must be an integer of at least 0."),
            ({"trials": 1.5}, "trials is 1.5; it must be an integer of at least 1."),
            ({"temperature": float("nan")}, "temperature is nan; it must be a number of at least 0."),
            ({"timeout": 0}, "timeout is 0; it must be a number above 0."),
            ({"top_p": 1.1}, "top_p is 1.1; it must be at most 1."),
        ],
    )
    def test_numbers_that_mean_nothing_are_refused(self, parsed: dict[str, Any], words: str) -> None:
        with pytest.raises(SelectionError, match=re.escape(words)):
            Plan.from_options("quiz", "model", **parsed)

    def test_numbers_of_numpy_are_numbers(self) -> None:
        parsed = Plan.from_options("quiz", "model", few_shot=np.int64(5), temperature=np.float64(0.5))
        assert (type(parsed.prompts.few_shot), type(parsed.generation.temperature)) == (int, float)

    def test_an_unknown_option_is_an_error_with_the_known_ones(self) -> None:
        with pytest.raises(SelectionError, match=r"evaluate has no option 'shot'. Options: .*few_shot, "):
            Plan.from_options("quiz", "model", shot=5)
