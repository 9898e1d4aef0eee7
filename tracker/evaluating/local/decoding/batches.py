"""Choose which prompts are generated together: prompts with a common prefix share it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tracker.evaluating.local.decoding.batch_test import Batching
from tracker.evaluating.local.packing import WORTH_SHARING, find_shared_prefix
from tracker.evaluating.local.tokenization import Ids

STEP_COST = 8
"""Tokens of a prompt that are computed in about the time of one step of generation, which reads all weights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptBatch:
    """Prompts that are generated together.

    Attributes:
        prefix: tokens of their common prefix, computed once; empty without one.
        members: indices of the prompts.
    """

    prefix: Ids
    members: Sequence[int]


def cut_batches(
    contexts: Sequence[Ids], heads: Sequence[str], *, size: int, max_tokens: int, batching: Batching
) -> list[PromptBatch]:
    """Cut all prompts into batches of similar length; batches with the same prefix follow one another.

    The group with the longest prompt is first, and so is the longest prompt of each group: a batch that is too large
    for memory fails early.

    Args:
        contexts: tokens of each prompt.
        heads: text before the question of each prompt.
        size: prompts per batch.
        max_tokens: maximum number of tokens of a response.
        batching: which prompts the model computes correctly together.
    """
    by_head: dict[str, list[int]] = defaultdict(list)
    for at, head in enumerate(heads):
        by_head[head].append(at)
    size = size if batching.together else 1
    groups, alone = [], []
    for members in by_head.values():
        prefix = find_shared_prefix([contexts[at] for at in members]) if len(members) > 1 else ()
        n_saved = (len(members) - 1) * len(prefix)
        is_worth_it = len(members) >= size or n_saved >= STEP_COST * max_tokens
        if batching.reuses and len(prefix) >= WORTH_SHARING and is_worth_it:
            groups.append((prefix, members))
        else:
            alone += members
    batches = []
    if alone:
        groups.append(((), sorted(alone)))
    for prefix, members in sorted(groups, key=lambda group: -max(len(contexts[at]) for at in group[1])):
        ordered = sorted(members, key=lambda at: (-len(contexts[at]), at))
        for part in [ordered] if batching.padded else _group_by_length(ordered, contexts):
            batches += [PromptBatch(prefix=prefix, members=part[at : at + size]) for at in range(0, len(part), size)]
    return batches


def _group_by_length(ordered: Sequence[int], contexts: Sequence[Ids]) -> list[list[int]]:
    return [list(part) for _, part in groupby(ordered, key=lambda at: len(contexts[at]))]
