"""Recognition of tables that cannot be imported: pairwise votes, and the weights of a regression."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracker.ingest.files.tabular.headings import normalize_heading

PAIRS = (("a", "b"), ("1", "2"), ("x", "y"), ("left", "right"), ("first", "second"))
SIDES = re.compile(r"^(?:(?P<stem>\w*?)_?)(?P<side>a|b|1|2|x|y|left|right|first|second)(?:_?(?:name|id|model))?$")
STEMS = frozenset(
    ("model", "models", "system", "player", "generator", "llm", "assistant", "candidate", "output", "response",
    "answer",
     "completion", "agent", "bot", "model_name", "")
)  # fmt: skip
OUTCOMES = frozenset(
    ("winner", "vote", "preference", "preferred", "outcome", "verdict", "result", "judgement", "judgment", "choice",
     "label", "win", "tie", "winner_model", "winning_model", "human_preference", "annotation", "score",
     "winner_model_a")
)  # fmt: skip
REGRESSION_WEIGHTS = re.compile(
    r"^(?:\(?intercept\)?|coefs?|coefficients?|(?:instruction|length)_(?:difficulty|coefficient))$|^np\.\w+\(|\.astype\("
)
"""Headings of weights, such as those by which AlpacaEval corrects win rates for length."""


def find_weight_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of weights of a regression."""
    return [name for name in names if REGRESSION_WEIGHTS.search(name.strip().lower())]


def find_vote_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of pairwise votes, such as model_a, model_b and winner; none if the table holds no votes."""
    by_plain = {normalize_heading(name): name for name in names}
    if "winner" in by_plain and "loser" in by_plain:
        return [by_plain["winner"], by_plain["loser"]]
    outcomes = [by_plain[plain] for plain in by_plain if plain in OUTCOMES or plain.startswith("winner")]
    if not outcomes:
        return []
    sides: dict[tuple[str, str], str] = {}
    for plain, name in by_plain.items():
        match = SIDES.match(plain)
        if match is not None and match["stem"] in STEMS:
            sides[match["stem"], match["side"]] = name
    for first, second in PAIRS:
        for (stem, side), name in sides.items():
            if side == first and (stem, second) in sides and (stem or first == "left" or "winner" in by_plain):
                return [name, sides[stem, second], outcomes[0]]
    return []
