"""Questions without the decoration of harnesses: labels, lists of their options, white space, Unicode forms.

Only comparisons use this form; the store keeps the text of the first file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

from tracker.ingest.resolve.prompt_texts import list_accepted_answers
from tracker.option_labels import option_letter, option_letters

LABEL = re.compile(r"\s*[*#]{0,3} ?(?P<label>question|problem|q)\s?:[ *]*", re.IGNORECASE)
END = re.compile(r"\s[*#]{0,3} ?(?:answer|solution)\s?:[\s*]*(?:\(\s*)?\Z", re.IGNORECASE)
SHORT_END = re.compile(r"\n[ \t]*a\s?:\s*\Z", re.IGNORECASE)
SHORT_END_AFTER_LABEL = re.compile(r"\sa\s?:\s*\Z", re.IGNORECASE)
OPTIONS_HEADING = re.compile(r"\s(?:answer )?(?:options|choices)\s?:\s*\Z", re.IGNORECASE)
OPTION_LINE = re.compile(r"[ \t]*[(\[]?(?P<label>[A-Z])[).:\]]{1,2}[ \t]+(?P<text>\S.*)")
OPTION_LABEL = re.compile(r"(?<=\s)(?:[(\[]?(?P<label>[A-Za-z]|\d{1,3})[).:\]]{1,2}|[-*\u2022])\Z")
MAX_LABEL_LENGTH = 8
INVISIBLE = str.maketrans("", "", "\u200b\u2060\ufeff")
SPACE = re.compile(r"\s+")
INDENT = re.compile(r" {2,}|(?=[ ]*\t)[ \t]+")
MAX_END_LENGTH = 32
MAX_LABELS = 4
"""Labels that are removed from each end of a text."""
FINAL_ANSWER = "####"
"""Stands between the solution and the final answer in reference answers of GSM8K."""


@dataclass(frozen=True, slots=True)
class ComparableQuestion:
    """A question as it is compared.

    Attributes:
        question: its text without decoration.
        options: options of the prompt, or those listed in its text; None without.
    """

    question: str
    options: tuple[str, ...] | None = None


def make_comparable(text: str, choices: Sequence[str] | None) -> ComparableQuestion:
    """Return a prompt's question and options without decoration.

    Removed are labels before the question (``Question:``, ``Problem:``, ``Q:``) and after it (``Answer:``,
    ``Solution:``, ``A:``), the list of the prompt's options after it, differences of white space other than
    indentation, and differences of Unicode form NFC. Some text always remains.

    Args:
        text: the text of the prompt.
        choices: its options; None if unknown.
    """
    plain = normalize("NFC", text).translate(INVISIBLE).replace("\r\n", "\n").replace("\r", "\n")
    options = _plain_options(choices) if choices else None
    plain = _strip_labels(plain)
    if options is None or list(options) == option_letters(len(options)):
        before, in_text = _split_listed_options(plain)
        options = in_text or options
    else:
        before = _strip_options(plain, options)
    if before != plain:
        plain = _strip_labels(_strip(OPTIONS_HEADING, before.rstrip()))
    return ComparableQuestion(_collapse(plain), options)


def is_same_prompt(
    first: ComparableQuestion, reference: str | None, second: ComparableQuestion, other_reference: str | None
) -> bool:
    """Return whether two prompts are one: equal questions with equal options, or without options.

    Without options, their reference answers must not differ. Where only one of them has options, their reference
    answers must be equal texts; a letter is not enough.
    """
    if first.question != second.question or not first.question:
        return False
    if first.options is not None and second.options is not None:
        return first.options == second.options
    options = first.options or second.options
    are_equal = have_equal_references(reference, other_reference, options)
    if options is None:
        return are_equal is not False
    text = reference if first.options is None else other_reference
    return are_equal is True and (text or "").strip() not in option_letters(len(options))


def is_same_text(first: ComparableQuestion, second: ComparableQuestion) -> bool:
    """Return whether two prompts of the same name have equal questions, and equal options if both have options."""
    has_same_options = first.options is None or second.options is None or first.options == second.options
    return first.question == second.question and has_same_options


def have_equal_references(
    reference: str | None, other_reference: str | None, options: Sequence[str] | None
) -> bool | None:
    """Return whether two reference answers of a question are equal; None if one is unknown.

    The letter of an option equals its text. Of a solution that ends in ``#### 72``, only 72 is compared.
    """
    if not (reference or "").strip() or not (other_reference or "").strip():
        return None
    first, second = (_final_answer(answer or "") for answer in (reference, other_reference))
    return bool(list_accepted_answers(first, options) & list_accepted_answers(second, options))


def _final_answer(reference: str) -> str:
    return _collapse(normalize("NFC", reference.rpartition(FINAL_ANSWER)[2]))


def _collapse(text: str) -> str:
    """Return a text with single spaces; the indentation of lines is kept, as it has a meaning in code."""
    if "\n " not in text and "\n\t" not in text:
        return " ".join(text.split())

    def replace(run: re.Match[str]) -> str:
        _, line_end, indent = run[0].rpartition("\n")
        return f"\n{indent}" if line_end and INDENT.fullmatch(indent) else " "

    return SPACE.sub(replace, text.strip())


def _strip(pattern: re.Pattern[str], text: str) -> str:
    """Return a text without the end that a pattern matches, unless nothing would remain."""
    end = pattern.search(text, max(0, len(text) - MAX_END_LENGTH))
    return text[: end.start()] if end and text[: end.start()].strip() else text


def _strip_labels(text: str) -> str:
    """Return a question without the labels before and after it."""
    ends = [END, SHORT_END]
    for _ in range(MAX_LABELS):
        before = text = text.rstrip()
        if (label := LABEL.match(text)) and text[label.end() :].strip():
            text = text[label.end() :]
            if label["label"] in "qQ":
                ends.append(SHORT_END_AFTER_LABEL)
        for end in ends:
            text = _strip(end, text)
        if text == before:
            break
    return text


def _plain_options(choices: Sequence[str]) -> tuple[str, ...]:
    """Return options with plain white space, and without their letters if each has its own."""
    texts = [normalize("NFC", choice).translate(INVISIBLE).strip() for choice in choices]
    lines = [OPTION_LINE.fullmatch(text) for text in texts]
    if len(texts) > 1 and [line and line["label"] for line in lines] == option_letters(len(texts)):
        texts = [line["text"] for line in lines if line]
    return tuple(map(_collapse, texts))


def _split_listed_options(text: str) -> tuple[str, tuple[str, ...] | None]:
    """Return the text before a list of options with letters, one a line, that ends it, and the options."""
    lines = text.rstrip().split("\n")
    matches = [OPTION_LINE.fullmatch(line) for line in lines]
    start = max((place for place, match in enumerate(matches) if match and match["label"] == "A"), default=len(lines))
    options: list[list[str]] = []
    for line, match in zip(lines[start:], matches[start:], strict=True):
        if match and match["label"] == chr(ord("A") + len(options)):
            options.append([match["text"]])
        else:
            options[-1].append(line)
    before = "\n".join(lines[:start])
    if len(options) > 1 and before.strip():
        return f"{before}\n", tuple(_collapse("\n".join(parts)) for parts in options)
    return text, None


def _strip_options(text: str, options: Sequence[str]) -> str:
    """Return a text without the list of these options at its end, with letters, numbers or bullets."""
    rest = _collapse(text)
    for place in reversed(range(len(options))):
        end = rest if rest.endswith(options[place]) else rest.rstrip(",;")
        if not options[place] or not end.endswith(options[place]):
            return text
        end = end[: -len(options[place])].rstrip()
        label = OPTION_LABEL.search(end[-MAX_LABEL_LENGTH:])
        if label is None or label["label"] not in (
            None,
            option_letter(place),
            option_letter(place).lower(),
            str(place + 1),
        ):
            return text
        rest = end[: len(end) - len(label[0])].rstrip()
    return rest or text
