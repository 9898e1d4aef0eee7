"""Render the texts of documents with the templates of a task, as lm-evaluation-harness does."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

from tracker.ingest.datasets.lm_eval.task import LmEvalTask
from tracker.ingest.datasets.row import RowError

Document = Mapping[str, Any]

NOT_LITERAL = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of `ast.literal_eval`, the last two for deep nesting."""


class TextRenderer:
    """Renders texts, options and reference answers of documents.

    Args:
        task: the task.
        fields: names of the fields of its evaluated documents; a template that is such a name is the field.
    """

    def __init__(self, task: LmEvalTask, fields: Collection[str]) -> None:
        self.task, self.fields = task, frozenset(fields)
        self.has_choices = task.doc_to_choice is not None

    def text(self, document: Document, template: Any = None) -> Any:
        """Return the text of a question, or the index of the correct option if the texts of the options differ."""
        template = self.task.doc_to_text if template is None else template
        if not isinstance(template, str):
            return _apply(template, document)
        if template in self.fields:
            return document[template]
        text = render_template(template, document)
        return ast.literal_eval(text) if text.isdigit() and self.has_choices else text

    def target(self, document: Document, template: Any = None) -> Any:
        """Return the reference answer: a text, the index of an option, or a list of them."""
        template = self.task.doc_to_target if template is None else template
        if not isinstance(template, str):
            return _apply(template, document)
        if template in self.fields:
            return document[template]
        text = render_template(template, document)
        if text.isdigit() and self.has_choices:
            return ast.literal_eval(text)
        if len(text) >= 2 and text[0] == "[" and text[-1] == "]":
            try:
                return ast.literal_eval(text)
            except NOT_LITERAL:
                return text
        return text

    def choices(self, document: Document, template: Any = None) -> list[str]:
        """Return the options.

        Raises:
            RowError: they are not a list of texts.
        """
        template = self.task.doc_to_choice if template is None else template
        if isinstance(template, str):
            options = (
                document[template] if template in self.fields else _parse_list(render_template(template, document))
            )
        elif isinstance(template, Mapping):
            options = list(template.values())
        else:
            options = _apply(template, document)
        if not isinstance(options, (list, tuple)) or not all(isinstance(option, str) for option in options):
            raise RowError(f"doc_to_choice is not a list of texts: {str(options)[:80]!r}")
        return list(options)

    def prefix(self, document: Document) -> str:
        """Return the beginning of the response."""
        prefix = self.task.gen_prefix
        if prefix is None:
            return ""
        return str(document[prefix]) if prefix in self.fields else render_template(prefix, document)


def resolve_field(document: Document, template: str | None) -> str:
    """Return a field of a document, or a rendered template; '' without one."""
    if not template:
        return ""
    return str(document[template]) if template in document else render_template(template, document)


def render_template(template: str, document: Document) -> str:
    """Render a Jinja template in a sandbox.

    Raises:
        RowError: it is invalid, or uses a field that the document lacks.
    """
    try:
        return _compile(template).render(**document)
    except Exception as error:  # expressions of templates can raise any exception
        raise RowError(f"the template {template[:60]!r} cannot be rendered: {error}") from error


@lru_cache(maxsize=256)
def _compile(template: str) -> Template:
    environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    environment.filters["regex_replace"] = _replace_pattern
    return environment.from_string(template)


def _replace_pattern(text: str, pattern: str, repl: str, count: int = 0) -> str:
    return re.sub(pattern, repl, text, count=count)


def _parse_list(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except NOT_LITERAL as error:
        raise RowError(f"doc_to_choice is not a list: {text[:80]!r}") from error


def _apply(template: Any, document: Document) -> Any:
    """Return a constant, or the result of a function."""
    if not callable(template):
        return template
    try:
        return template(document)
    except Exception as error:  # foreign code
        raise RowError(f"the function {getattr(template, '__name__', template)} fails: {error}") from error
