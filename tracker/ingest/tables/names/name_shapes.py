"""Whether names look like those of models, tasks or prompts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from tracker.ingest.measurement import Entity, KnownNames
from tracker.ingest.tables.names.vocabulary import (
    MODEL_PLACEHOLDERS,
    MODEL_SUFFIXES,
    PROMPT_NAMES,
    PROMPT_TEXT,
    TASK_NAMES,
    TASK_SETTINGS,
)
from tracker.model_names.series import MODEL_FAMILIES, MODEL_SIZES

MAX_LABELS = 200
NUMBERED = re.compile(r"^(?P<stem>[a-z][a-z_.\-/:# ]*?)[_\-/:#. ]*\d+$", re.I)
BARE_SIZE = re.compile(r"^~?\d+(?:\.\d+)?\s*[bm]$", re.I)
"""A number of parameters alone names no model."""
SLASHED = re.compile(r"^[\w.\-]+/[\w.\-]*[a-z][\w.\-]*$", re.I)


@lru_cache(maxsize=1 << 15)
def name_kind(name: str) -> Entity | None:
    """Return what a name looks like; None if it looks like none of them, or like several."""
    plain = name.strip()
    if not plain or BARE_SIZE.match(plain):
        return None
    if PROMPT_NAMES.match(plain) and not MODEL_SIZES.search(plain):
        return "task" if MODEL_FAMILIES.search(plain) is None and TASK_SETTINGS.search(plain) else _numbered(plain)
    if len(plain) > 25 and PROMPT_TEXT.search(plain):
        return "prompt"
    is_task = TASK_NAMES.search(plain) is not None or TASK_SETTINGS.search(plain) is not None
    has_family, has_size = MODEL_FAMILIES.search(plain) is not None, MODEL_SIZES.search(plain) is not None
    if TASK_SETTINGS.search(plain):
        return "task"
    if has_size or (has_family and not (is_task and TASK_NAMES.match(plain))):
        return "model"
    if is_task:
        return "task"
    if MODEL_PLACEHOLDERS.match(plain) or MODEL_SUFFIXES.search(plain) or SLASHED.match(plain):
        return "model"
    return "prompt" if PROMPT_TEXT.search(plain) else None


def number_stem(name: str) -> str:
    """Return the letters before the number at the end of a name; '' without a number or letters."""
    match = NUMBERED.match(name.strip())
    return match["stem"] if match is not None else ""


def _numbered(name: str) -> Entity | None:
    """Return the kind of a name that ends in a number; a year or version does not make a prompt."""
    if MODEL_FAMILIES.match(name) and not re.search(r"[/#:]\d+$", name):
        return "model"
    is_benchmark = TASK_NAMES.search(name) is not None and re.search(r"(?:^|\D)\d{1,3}$", name) is not None
    return None if is_benchmark and not re.search(r"[/#:]\d+$|0\d+$", name) else "prompt"


def name_shares(names: Iterable[str], known: KnownNames | None = None) -> Mapping[Entity, float]:
    """Return the share of names that look like models, tasks and prompts; names in the store count threefold."""
    counts: dict[Entity, float] = {"model": 0.0, "task": 0.0, "prompt": 0.0}
    total = 0.0
    distinct = list(dict.fromkeys(names))[:MAX_LABELS]
    stems = Counter(number_stem(name) for name in distinct)
    for name in distinct:
        stored = known.kind(name) if known is not None else None
        kind = stored or name_kind(name)
        if (
            kind == "prompt"
            and not stored
            and len(distinct) > 1
            and stems[number_stem(name)] == 1
            and number_stem(name)
        ):
            kind = None  # the only number with these letters numbers nothing
        weight = 3.0 if stored else 1.0
        total += weight
        if kind is not None:
            counts[kind] += weight
    return {kind: count / total if total else 0.0 for kind, count in counts.items()}
