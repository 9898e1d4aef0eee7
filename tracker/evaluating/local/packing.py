"""Choose which prompts are computed together: prompts with a common prefix share it, and none is padded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.tokenization import Ids
from tracker.evaluating.local.tokens import EncodedPrompt

WORTH_SHARING = 16
"""Minimum tokens of a common prefix to compute it separately."""
PREFIX_COST = 64
"""Tokens of a row whose computation takes as long as starting to compute a prefix: about 4 ms on a CPU."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixGroup:
    """Prompts with a common prefix.

    Attributes:
        prefix: tokens of the common prefix; empty if the prompts are grouped without one.
        packs: indices of the prompts, in the packs in which they are computed.
    """

    prefix: Ids
    packs: Sequence[Sequence[int]]


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedRow:
    """Prompts packed into one row of tokens after a common prefix.

    Each prompt contributes first the rest of its context and the common beginning of its options, then a branch for
    each option with more than one token left. A branch attends to the prefix, its prompt and itself.

    Attributes:
        ids: ``(s,)`` tokens.
        positions: ``(s,)`` position of each token in its text.
        owner: ``(s,)`` index of the prompt.
        branch: ``(s,)`` index of the option, -1 for tokens that all options share.
        predictors: ``(t,)`` positions in the row that predict a token of an option.
        targets: ``(t,)`` the predicted token.
        options: ``(t,)`` the option, counted through all prompts.
        shared: ``(t,)`` whether all options of the prompt begin with the token; ``options`` is then the first of them.
        n_options: number of options of each prompt.
    """

    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    owner: NDArray[np.int64]
    branch: NDArray[np.int64]
    predictors: NDArray[np.int64]
    targets: NDArray[np.int64]
    options: NDArray[np.int64]
    shared: NDArray[np.bool_]
    n_options: tuple[int, ...]

    def sum_by_option(self, logprobs: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the log-probability of each option, by prompt.

        Args:
            logprobs: ``(t,)`` log-probabilities of the targets.
        """
        starts = np.cumsum((0, *self.n_options))
        total = np.zeros(starts[-1])
        np.add.at(total, self.options[~self.shared], logprobs[~self.shared])
        sums = []
        for first, last in pairwise(starts):
            common = logprobs[self.shared & (self.options == first)].sum()
            sums.append(total[first:last] + common)
        return sums


def group_by_prefix(prompts: Sequence[EncodedPrompt], *, batch_size: int | None, budget: int) -> list[PrefixGroup]:
    """Cut all prompts into packs, longest first, so that a pack too large for memory fails at once.

    Prompts with the same text before their question share it. Of the others, those share a prefix that begin with the
    same tokens, such as an instruction or the same first example, and fill a row.

    Args:
        prompts: the prompts.
        batch_size: prompts per pack; None to fill packs up to the budget.
        budget: tokens computed together if ``batch_size`` is None.
    """
    by_head: dict[str, list[int]] = defaultdict(list)
    for at, encoded in enumerate(prompts):
        by_head[encoded.prompt.head(encoded.context.n_examples)].append(at)
    groups, alone = [], []
    for members in by_head.values():
        prefix = find_shared_prefix([prompts[at].context.ids for at in members]) if len(members) > 1 else ()
        if len(prefix) < WORTH_SHARING:
            alone += members
        else:
            groups.append(_make_group(prompts, members, prefix, batch_size, budget))
    for members, prefix in _cut_by_prefix(prompts, alone, batch_size, budget):
        groups.append(_make_group(prompts, members, prefix, batch_size, budget))
    return sorted(groups, key=lambda group: -max(prompts[pack[0]].length for pack in group.packs))


def _cut_by_prefix(
    prompts: Sequence[EncodedPrompt], members: Sequence[int], batch_size: int | None, budget: int
) -> Iterator[tuple[list[int], Ids]]:
    """Yield groups of prompts with a common prefix that saves tokens, and the rest without a prefix."""
    order = sorted(members, key=lambda at: prompts[at].context.ids)
    contexts = [prompts[at].context.ids for at in order]
    common = [len(find_shared_prefix(neighbours)) for neighbours in pairwise(contexts)]
    costs = np.cumsum([0, *(count_computed_tokens(prompts[at], 0) for at in order)])

    def fills_row(first: int, last: int, n_prefix: int) -> bool:
        n = last - first
        return n >= batch_size if batch_size is not None else costs[last] - costs[first] - n * n_prefix >= budget

    alone = set(order)
    for first, last in find_prefix_groups(common, fills_row):
        alone.difference_update(order[first:last])
        yield sorted(order[first:last]), contexts[first][: min(common[first : last - 1])]
    if alone:
        yield sorted(alone), ()


def find_prefix_groups(common: Sequence[int], is_allowed: Callable[[int, int, int], bool]) -> Sequence[tuple[int, int]]:
    """Return groups of sorted texts, first and last + 1, that save tokens by a common prefix.

    A group holds all texts with the same prefix. If it has n texts and its prefix k tokens, it saves (n - 1) k tokens
    less `PREFIX_COST`. Such groups are nested or disjoint; of nested groups, those that save most are chosen.

    Args:
        common: ``(n_texts - 1,)`` tokens with which each text and the next begin.
        is_allowed: whether a group may be formed, from first, last + 1 and the length of its prefix.
    """
    open_groups: list[tuple[int, int, int, list[tuple[int, int]]]] = [(0, 0, 0, [])]  # prefix, first, saved, inside
    for last, n_next in enumerate([*common, 0], start=1):
        first, saved = last - 1, 0
        groups: list[tuple[int, int]] = []
        while open_groups[-1][0] > n_next:
            n_prefix, first, inside_saved, inside = open_groups.pop()
            saved, groups = saved + inside_saved, [*inside, *groups]
            whole = (last - first - 1) * n_prefix - PREFIX_COST
            if n_prefix >= WORTH_SHARING and whole > saved and is_allowed(first, last, n_prefix):
                saved, groups = whole, [(first, last)]
        if open_groups[-1][0] < n_next:
            open_groups.append((n_next, first, saved, groups))
        else:
            n_prefix, first, inside_saved, inside = open_groups.pop()
            open_groups.append((n_prefix, first, inside_saved + saved, [*inside, *groups]))
    return open_groups[0][3]


def pack_padded(
    prompts: Sequence[EncodedPrompt], *, batch_size: int | None, budget: int, is_encoder_decoder: bool
) -> list[list[int]]:
    """Cut all prompts into packs whose options have separate, padded rows, longest first.

    Args:
        prompts: the prompts.
        batch_size: prompts per pack; None to fill packs up to the budget.
        budget: tokens computed together if ``batch_size`` is None.
        is_encoder_decoder: whether the context is computed once for all options.
    """
    costs = {}
    for at, prompt in enumerate(prompts):
        n_rows = 1 if is_encoder_decoder else len({option[:-1] for option in prompt.options})
        costs[at] = n_rows * prompt.length
    order = sorted(costs, key=lambda at: (-prompts[at].length, at))
    return list(_cut_packs(order, costs, batch_size, budget))


def find_shared_prefix(contexts: Sequence[Ids]) -> Ids:
    """Return the common prefix of the contexts, leaving at least one token of each."""
    common = _common_prefix(min(contexts), max(contexts))
    return common[: min(map(len, contexts)) - 1]


def pack_row(members: Sequence[EncodedPrompt], n_prefix: int) -> PackedRow:
    """Pack some prompts into one row.

    Args:
        members: the prompts.
        n_prefix: number of tokens of each context that are computed before.
    """
    ids: list[int] = []
    positions: list[int] = []
    owner: list[int] = []
    branch: list[int] = []
    predictions: list[tuple[int, int, int, bool]] = []
    n_before = 0
    for number, prompt in enumerate(members):
        common = find_common_start(prompt.options)
        trunk = (*prompt.context.ids[n_prefix:], *common)
        start = len(ids)
        last = start + len(trunk) - 1
        ids += trunk
        positions += range(n_prefix, n_prefix + len(trunk))
        branch += [-1] * len(trunk)
        predictions += [(last - len(common) + k, token, n_before, True) for k, token in enumerate(common)]
        for option, whole in enumerate(prompt.options):
            rest = whole[len(common) :]
            first = len(ids)
            places = [last, *range(first, first + len(rest) - 1)]
            predictions += [(place, token, n_before + option, False) for place, token in zip(places, rest, strict=True)]
            ids += rest[:-1]
            positions += range(n_prefix + len(trunk), n_prefix + len(trunk) + len(rest) - 1)
            branch += [option] * (len(rest) - 1)
        owner += [number] * (len(ids) - start)
        n_before += len(prompt.options)
    predictors, targets, options, shared = zip(*predictions, strict=True)
    return PackedRow(
        ids=np.array(ids),
        positions=np.array(positions),
        owner=np.array(owner),
        branch=np.array(branch),
        predictors=np.array(predictors),
        targets=np.array(targets),
        options=np.array(options),
        shared=np.array(shared),
        n_options=tuple(len(member.options) for member in members),
    )


def find_common_start(options: Sequence[Ids]) -> Ids:
    """Return the common prefix of the options, leaving at least one token of each."""
    common = _common_prefix(min(options), max(options))
    return common[: min(map(len, options)) - 1]


def _common_prefix(first: Ids, second: Ids) -> Ids:
    n = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    return first[:n]


def count_computed_tokens(prompt: EncodedPrompt, n_prefix: int) -> int:
    """Return the number of tokens computed for a prompt in a pack."""
    common = len(find_common_start(prompt.options))
    return len(prompt.context.ids) - n_prefix + common + sum(len(option) - common - 1 for option in prompt.options)


def _make_group(
    prompts: Sequence[EncodedPrompt], members: Sequence[int], prefix: Ids, batch_size: int | None, budget: int
) -> PrefixGroup:
    costs = {at: count_computed_tokens(prompts[at], len(prefix)) for at in members}
    order = sorted(members, key=lambda at: (-costs[at], at))
    return PrefixGroup(prefix=prefix, packs=list(_cut_packs(order, costs, batch_size, budget)))


def _cut_packs(order: Sequence[int], costs: dict[int, int], batch_size: int | None, budget: int) -> Iterator[list[int]]:
    pack: list[int] = []
    filled = 0
    for at in order:
        is_full = filled + costs[at] > budget if batch_size is None else len(pack) == batch_size
        if pack and is_full:
            yield pack
            pack, filled = [], 0
        pack.append(at)
        filled += costs[at]
    yield pack
