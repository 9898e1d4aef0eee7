"""Which prompts are equal, but for how they are set in type.

Two texts are equal if they are after this: compatibility forms are replaced by plain ones (NFKC: ligatures, full-width
letters), upper and lower case become one, and runs of white space become one blank, none at the ends. Powers, indices
and fractions stay what they are, since 2² is not 22.

Source: Gupta et al. 2024, section 3.1 and appendix A.3; Unicode Standard Annex 15.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray


def find_duplicate_groups(
    texts: Sequence[str | None], choices: Sequence[Sequence[str] | None], *, by: Literal["full", "question"] = "full"
) -> NDArray[np.int32]:
    """The groups of equal prompts.

    Args:
        texts: of ``n`` prompts, without their choices. One that is None or blank is not known, and equal to no other.
        choices: of each prompt, in their order: the same choices in another order are another prompt. None is the same
            as no choices.
        by: "full" compares texts and choices; "question" texts alone, as the paper's authors' code does, which calls
            prompts equal that share "Which of the following is true?" only. Right answers are never compared.

    Returns:
        ``(n,)``, the number of each prompt's group in the order of their first members; -1 where it has no equal.
    """
    keys = [
        None
        if text is None
        else (normalize_text(text), tuple(map(normalize_text, offered or ())) if by == "full" else ())
        for text, offered in zip(texts, choices, strict=True)
    ]
    members: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for place, key in enumerate(keys):
        if key is not None and key[0]:
            members.setdefault(key, []).append(place)
    groups = np.full(len(keys), -1, np.int32)
    for number, places in enumerate(places for places in members.values() if len(places) > 1):
        groups[places] = number
    return groups


def normalize_text(text: str) -> str:
    """A text as it is compared; doing it twice changes nothing more."""
    if not text.isascii():
        text = _plain(_plain(text).casefold())
    return " ".join(text.casefold().split())


def _plain(text: str) -> str:
    """Compatibility forms replaced, but for powers, indices and fractions."""
    return _replaceable().sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


@cache
def _replaceable() -> re.Pattern[str]:
    """Runs of characters that are no powers, indices or fractions."""
    kept = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.decomposition(character).startswith(("<super>", "<sub>", "<fraction>"))
    ]
    return re.compile(f"[^{re.escape(''.join(kept))}]+")
