"""Prompt templates, built in or custom."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.errors import BadInputError, NotFoundError, SelectionError
from tracker.evaluating.option_values import LABELS
from tracker.evaluating.prompt_templates.fields import TemplateFields, option_labels
from tracker.settings.text_files import read_text_file

if TYPE_CHECKING:
    from tracker.evaluating.prompt_templates.template_file import TemplateBlock

DEFAULT_METHODS = {"label": "letters", "text": "loglikelihood", "written": "generation"}
"""Default method by the kind of answer."""

ENDINGS = (".jinja", ".jinja2", ".j2")


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """A prompt template.

    Attributes:
        name: name of a built-in template, or of the file.
        source: the file's text, with ``\n`` line ends.
        settings: value of every setting but ``labels``, by name.
        labels: labels of the options, one of `LABELS`.
        blocks: compiled blocks, by name.
    """

    name: str
    source: str
    settings: Mapping[str, Any]
    labels: str
    blocks: Mapping[str, TemplateBlock]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the source."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def answer(self) -> str:
        """What the model answers: the label of an option, its text, or generated text."""
        return str(self.settings["answer"])

    @property
    def method(self) -> str:
        """Default method; one of `METHODS`."""
        return DEFAULT_METHODS[self.answer]

    @property
    def has_options(self) -> bool:
        """Whether the template requires prompts with options."""
        return self.answer != "written" or any({"choices", "label"} & block.names for block in self.blocks.values())

    @property
    def join(self) -> str:
        """Text between a question and its answer."""
        return str(self.settings["join"])

    @property
    def separator(self) -> str:
        """Text between examples, and before the question."""
        return str(self.settings["separator"])

    @property
    def blank(self) -> str:
        """Replacement of a withheld question, and of every further field."""
        return str(self.settings["blank"])

    @property
    def isolated_labels(self) -> bool:
        """Whether a label is tokenized alone, not after ``join``."""
        return bool(self.settings["isolated_labels"])

    @property
    def stop(self) -> tuple[str, ...]:
        """Stop strings of a generated answer; by default the separator."""
        stop = self.settings["stop"]
        return (self.separator,) * bool(self.separator) if stop is None else tuple(stop)

    @property
    def max_tokens(self) -> int:
        """Maximum length of a generated answer, in tokens."""
        return int(self.settings["max_tokens"])

    def as_settings(self) -> dict[str, Any]:
        """Settings that a run records."""
        return {
            "name": self.name,
            "digest": self.digest,
            "source": self.source,
            **self.settings,
            "labels": self.labels,
            "stop": list(self.stop),
        }

    def render_header(self, fields: TemplateFields) -> str:
        """Render the beginning of the text.

        Raises:
            BadInputError: the template cannot be rendered for this prompt.
        """
        return self._render_block("header", fields, {})

    def render_question(self, fields: TemplateFields) -> str:
        """Render the question, up to where its answer begins.

        Raises:
            BadInputError: as above.
        """
        return self._render_block("question", fields, {})

    def render_option(self, fields: TemplateFields, place: int) -> str:
        """Render an option as a continuation.

        Args:
            fields: fields of the prompt.
            place: index of the option, from 0.

        Raises:
            BadInputError: as above.
        """
        label, text = option_labels(self.labels, fields.choices)[place], fields.choices[place]
        if "answer" not in self.blocks:
            return label if self.answer == "label" else text
        return self._render_block("answer", fields, {"label": label, "answer": text})

    def render_answer(self, fields: TemplateFields, gold: str) -> str:
        """Render the reference answer of a few-shot example.

        Args:
            fields: fields of a prompt without options.
            gold: its reference answer.

        Raises:
            BadInputError: as above.
        """
        return self._render_block("answer", fields, {"answer": gold}) if "answer" in self.blocks else gold

    def _render_block(self, block: str, fields: TemplateFields, more: Mapping[str, str]) -> str:
        if block not in self.blocks:
            return ""
        values = {**fields.values(option_labels(self.labels, fields.choices)), **more}
        return self.blocks[block].render(values, fields)


def list_built_in_templates() -> tuple[str, ...]:
    """Return the names of the built-in templates."""
    names = (Path(entry.name) for entry in files("tracker.evaluating.prompt_templates").joinpath("built_in").iterdir())
    return tuple(sorted(name.stem for name in names if name.suffix == ".jinja"))


def load_template(name_or_path: str, *, labels: str | None = None) -> Template:
    """Load a template by its name or from a file.

    Args:
        name_or_path: name of a built-in template, or path of a ``.jinja`` file.
        labels: labels of the options, one of `LABELS`; by default the template's.

    Raises:
        NotFoundError: no built-in template has this name.
        BadInputError: the file cannot be read or parsed; the message names the line.
        SelectionError: the labels are unknown.
    """
    if labels is not None and labels not in LABELS:
        raise SelectionError(f"No labels {labels!r}. Known: {', '.join(LABELS)}.")
    path = Path(name_or_path)
    if name_or_path in list_built_in_templates():
        source = files("tracker.evaluating.prompt_templates").joinpath("built_in", f"{name_or_path}.jinja")
        template = _parse(name_or_path, source.read_text(encoding="utf-8"), name_or_path)
    elif path.suffix in ENDINGS or path.name != name_or_path or path.is_file():
        template = _parse(path.name, _read(path), str(path))
    else:
        hint = f"A custom template is a file that ends in {ENDINGS[0]}: --template ./FILE{ENDINGS[0]}"
        raise NotFoundError("template", name_or_path, list_built_in_templates(), hint)
    return template if labels is None else replace(template, labels=labels)


def default_template(choices: Sequence[Sequence[str] | None]) -> Template:
    """Return ``multiple_choice`` if at least half of the prompts have options, else ``written``.

    Args:
        choices: options of each prompt; None if it has none.
    """
    n_with = sum(map(bool, choices))
    return load_template("multiple_choice" if n_with and 2 * n_with >= len(choices) else "written")


def _parse(name: str, source: str, place: str) -> Template:
    from tracker.evaluating.prompt_templates.template_file import parse_template

    source = source.replace("\r\n", "\n").replace("\r", "\n")
    file = parse_template(source, place)
    settings = dict(file.settings)
    return Template(name=name, source=source, labels=settings.pop("labels"), settings=settings, blocks=file.blocks)


def _read(path: Path) -> str:
    try:
        return read_text_file(path, "utf-8-sig") if path.is_file() else _raise_no_such_file(path)
    except UnicodeDecodeError as error:
        raise BadInputError(path, f"the file is not UTF-8 text (byte {error.start + 1})") from None
    except OSError as error:
        raise BadInputError(path, f"cannot be read: {error.strerror}") from None


def _raise_no_such_file(path: Path) -> str:
    raise BadInputError(path, "no such file", advice=f"Built in: {', '.join(list_built_in_templates())}.")
