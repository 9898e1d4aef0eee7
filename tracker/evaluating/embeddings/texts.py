"""The text of a prompt that an encoder reads."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tracker.errors import SelectionError
from tracker.option_labels import option_letter
from tracker.queries.prompts import PromptTexts

DEFAULT_TEMPLATE = "question+choices"
DETAILS = "details:"
TEMPLATES = ("question", DEFAULT_TEMPLATE, f"{DETAILS}FIELD")


def check_template(template: str) -> None:
    """Reject a template that is not one of `TEMPLATES`.

    Raises:
        SelectionError: the template is unknown.
    """
    names_field = template.startswith(DETAILS) and template != DETAILS
    if template not in TEMPLATES[:2] and not names_field:
        raise SelectionError(f"No template {template!r}. Known: {', '.join(TEMPLATES)}.")


def template_texts(prompts: PromptTexts, template: str, benchmark: str) -> list[str | None]:
    """Return the text of each prompt under a template; None for a prompt without one.

    ``question`` is the stored text. ``question+choices`` adds a line per option, if there are any. ``details:FIELD`` is
    another field of the prompt.

    Args:
        prompts: the prompts of one benchmark.
        template: one of `TEMPLATES`.
        benchmark: label of their benchmark, for messages.

    Raises:
        SelectionError: the template is unknown, or no prompt has a text under it.
    """
    check_template(template)
    if template.startswith(DETAILS):
        field = template.removeprefix(DETAILS)
        texts = [_as_text(details.get(field)) for details in prompts.details]
    else:
        choices = prompts.choices if template == DEFAULT_TEMPLATE else [None] * len(prompts.texts)
        texts = [_join_options(text, options) for text, options in zip(prompts.texts, choices, strict=True)]
    if not any(texts):
        raise SelectionError(_explain_no_texts(prompts, template, benchmark))
    return texts


def _join_options(text: str | None, options: Sequence[str] | None) -> str | None:
    if text is None or not text.strip():
        return None
    return "\n".join([text, *_lines(options or ())])


def _lines(options: Sequence[str]) -> Iterator[str]:
    for place, option in enumerate(options):
        yield f"{option_letter(place)}. {option}"


def _as_text(value: Any) -> str | None:
    """Return a field as text; values other than text are written as JSON."""
    if value is None:
        return None
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if text.strip() else None


def _explain_no_texts(prompts: PromptTexts, template: str, benchmark: str) -> str:
    if template.startswith(DETAILS):
        fields = sorted({field for details in prompts.details for field in details})
        known = f"Known: {', '.join(fields)}." if fields else "Its prompts have no further fields."
        return f"No prompt of {benchmark} has a text in the field {template.removeprefix(DETAILS)!r}. {known}"
    return (
        f"The texts of {benchmark}'s prompts are not stored. Import a table with columns prompt_id and question: "
        f"suffrage ingest PROMPTS --benchmark {shlex.quote(benchmark)}"
    )
