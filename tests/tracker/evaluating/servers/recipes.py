"""Recipes for evaluations: options of `suffrage evaluate` with their values, as README, docs and the help show them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import click
from protocol_server import MODEL

from tracker.cli.commands.evaluate import command
from tracker.cli.evaluation_options import join_budget
from tracker.evaluating.option_values import JUDGE_TEMPLATES
from tracker.evaluating.prompt_templates.template import list_built_in_templates
from tracker.evaluating.scoring.written_answers import IGNORABLE, METRICS

ROOT = Path(__file__).parents[4]
PAGES = (
    "README.md",
    "docs/how-to/evaluate.md",
    "docs/how-to/servers.md",
    "docs/how-to/datasets.md",
    "docs/reference/scoring.md",
    "docs/reference/templates.md",
    "docs/reference/commands.md",
)
"""Pages whose code spans of options are about evaluations; lines with `suffrage evaluate` are read on all pages."""
FENCE = re.compile(r"^ *```\w*\n(.*?)^ *```", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
EVALUATE = re.compile(r"(?:suffrage )?evaluate (.*)")
PLACEHOLDERS = {
    "MODEL": MODEL, "REGEX": r"(?s)(.+)", "TEXT": "Think.", "NAME": "train", "FILE": "test", "P": "1.0",
    "T": "0.5", "K": "1", "./mine.jinja": "smart",
}  # fmt: skip
"""What pages leave to the reader, and a value of it."""
FOREIGN = {"--preset NAME", "--template lm_eval"}
"""Spans of these pages on another command, and on imported tasks of lm-evaluation-harness.

`tests/tracker/evaluating/test_imported_lm_eval_tasks.py` evaluates such tasks.
"""
OPTIONS = {name: option for option in command.params if isinstance(option, click.Option) for name in option.opts}
DECIDING = {
    "--template", "--method", "--labels", "--preset", "--metric", "--extract", "--extract-reference", "--ignore",
    "--condition", "--few-shot", "--few-shot-split", "--shots", "--answer-only-shots", "--judge", "--judge-template",
    "--trials", "--chat", "--system-prompt", "--template-argument", "--stop", "--max-tokens", "--temperature",
    "--top-p", "--api", "--extra-body",
}  # fmt: skip
"""Options that decide how answers are requested and scored."""
NEUTRAL = {
    "--model", "--name", "--variant", "--split", "--tasks", "--limit", "--seed", "--too-long", "--judge-api-base",
    "--revision", "--batch-size", "--device", "--dtype", "--trust-remote-code", "--api-base", "--key-env",
    "--concurrency", "--requests-per-minute", "--tokens-per-minute", "--timeout", "--tries", "--budget", "--price-read",
    "--price-written", "--engine", "--device-count", "--base-model",
    "--errored", "--again", "--dry-run", "--show-prompt", "--database",
}  # fmt: skip
"""Options that decide which prompts are evaluated, where, how fast, and what is printed."""
NEEDED = {
    "--system-prompt": ("--api", "chat"),
    "--template-argument": ("--api", "chat"),
    "--shots": ("--few-shot", "2", "--few-shot-split", "train"),
    "--answer-only-shots": ("--condition", "full,answer-only", "--few-shot", "2", "--few-shot-split", "train"),
    "--labels": ("--template", "multiple_choice"),
}
"""What an option has an effect with, if it is shown alone."""


@dataclass(frozen=True)
class Recipe:
    """Options as documented.

    Attributes:
        place: page, or `--help`.
        benchmark: name in the command; empty if only options are shown.
        arguments: the options and their values.
    """

    place: str
    benchmark: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.benchmark, *self.arguments)).strip()

    def value(self, option: str) -> str:
        """The value of an option; empty without it."""
        return self.arguments[self.arguments.index(option) + 1] if option in self.arguments else ""


def documented(texts: dict[str, str] | None = None) -> list[Recipe]:
    """Every recipe of the pages and of the help, each once."""
    recipes: dict[tuple[str, tuple[str, ...]], Recipe] = {}
    for page, text in (read_pages() if texts is None else texts).items():
        for text_of_command in find_commands(page, text):
            recipe = parse(page, text_of_command)
            if recipe is not None:
                recipes.setdefault((recipe.benchmark, recipe.arguments), recipe)
    for arguments in help_choices():
        recipes.setdefault(("", arguments), Recipe("--help", "", arguments))
    return list(recipes.values())


def read_pages() -> dict[str, str]:
    """README and docs by path."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def find_commands(page: str, text: str) -> list[str]:
    """Command lines of the blocks, and code spans of commands; of evaluation pages, those of options alone too."""
    joined = "\n".join(body.replace("\\\n", " ") for body in FENCE.findall(text))
    lines = [line for line in joined.splitlines() if re.match(r"\s*(\$ )?suffrage evaluate \S+ .*--", line)]
    spans = [" ".join(span.split()) for span in SPAN.findall(FENCE.sub("", text))]
    is_command = re.compile(r"(suffrage )?evaluate .*--")
    is_options = re.compile(r"--[a-z][a-z-]* \S" if page in PAGES else "$.")
    return lines + [span for span in spans if is_command.match(span) or is_options.match(span)]


def parse(page: str, text: str) -> Recipe | None:
    """The recipe of a command or of options; None if it is about another command, or about nothing that is scored."""
    match = EVALUATE.search(text)
    words = join_budget(shlex.split(match[1] if match else text, comments=True))
    benchmark = words.pop(0) if match and not words[0].startswith("-") else ""
    names = [word for word in words if word.startswith("--")]
    if text in FOREIGN or not (match or set(names) <= set(OPTIONS)):
        return None
    arguments: list[str] = []
    while words:
        name = words.pop(0)
        takes_value = not getattr(OPTIONS[name], "is_flag", False)
        value = [words.pop(0)] if takes_value and words else []
        if name in DECIDING:
            arguments += [name, *map(replace_placeholder, value)]
    return Recipe(page, benchmark, complete(tuple(arguments))) if arguments or benchmark else None


def replace_placeholder(value: str) -> str:
    """A value, or that of a placeholder: a word in capitals, or a file.

    Raises:
        KeyError: the placeholder has no value here.
    """
    return PLACEHOLDERS[value] if value.isupper() or value.startswith("./") else value


def complete(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Options with those that they need."""
    return (*arguments, *NEEDED.get(arguments[0], ())) if len(arguments) == 2 else arguments


def help_choices() -> list[tuple[str, ...]]:
    """Each value that the help lists of an option that decides how answers are requested and scored."""
    choices = [
        (name, value)
        for name, parameter in OPTIONS.items()
        if isinstance(parameter.type, click.Choice) and name in DECIDING
        for value in parameter.type.choices
    ]
    choices += [("--metric", ",".join(sorted(METRICS))), ("--ignore", ",".join(IGNORABLE))]
    choices += [("--template", template) for template in list_built_in_templates()]
    choices += [("--condition", condition) for condition in ("full", "answer-only")]
    choices += [("--judge", MODEL, "--judge-template", rubric) for rubric in JUDGE_TEMPLATES]
    return [complete(choice) for choice in choices]
