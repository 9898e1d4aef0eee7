"""What texts must not contain: invented terms of docs/glossary.md, and sentences of more than 30 words."""

from __future__ import annotations

import re

from source_tree import glossary_rows

MAX_WORDS = 30

TERMS = [term.strip("`") for terms, *_ in glossary_rows("Invented terms in texts") for term in terms.split(", ")]
ALTERNATIVES = "|".join(r"\s+".join(map(re.escape, term.split())) for term in sorted(TERMS, key=len, reverse=True))
INVENTED_TERM = re.compile(rf"(?<![\w-])(?:{ALTERNATIVES})(?![\w-])", re.I)
CODE_SPAN = re.compile(r"(`+)[^`\n]+\1")
PARAGRAPH_BREAK = re.compile(r"\n\s*\n|\n\s*[-*•] ")


def invented_terms(text: str) -> list[tuple[int, str]]:
    """Find the invented terms outside code spans, each with the number of line breaks before it."""
    prose = CODE_SPAN.sub("x", text)
    return [(prose.count("\n", 0, match.start()), match.group()) for match in INVENTED_TERM.finditer(prose)]


def long_sentences(text: str) -> list[str]:
    """Find the sentences of more than 30 words; a value in an f-string is a word, a list of names is no sentence."""
    return [
        " ".join(sentence.split())
        for paragraph in PARAGRAPH_BREAK.split(text)
        for sentence in re.split(r"(?<=[.!?])\s+", paragraph)
        if sum(bool(re.search(r"\w|\{\}", word)) for word in sentence.split()) > MAX_WORDS
        and any(word[0].islower() for word in sentence.split())
    ]
