"""Which questions go through a model together: those that begin alike share that beginning, and none is padded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.tokens import Encoded, Ids

WORTH_SHARING = 16
"""Tokens that a beginning must have to be computed by itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Questions that begin alike.

    Attributes:
        prefix: the tokens they share; none where they are together for no such reason.
        packs: their places among all questions, in the packs in which they are computed.
    """

    prefix: Ids
    packs: Sequence[Sequence[int]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """Questions one behind another as one row of tokens, after a shared beginning.

    Of each question come first what it alone has of its context and what its options begin with alike, then a branch
    for each option of which more than one token is left. A branch reads the beginning, its question and itself.

    Attributes:
        ids: ``(s,)`` tokens.
        positions: ``(s,)`` place of each in the text it belongs to.
        owner: ``(s,)`` number of the question.
        branch: ``(s,)`` number of the option, -1 for what all of them read.
        predictors: ``(t,)`` places in the row from which a token of an option is foretold.
        targets: ``(t,)`` that token.
        options: ``(t,)`` the option, counted through all questions.
        shared: ``(t,)`` whether all options of the question begin with that token; ``options`` is then the first.
        n_options: of each question.
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

    def may_read(self, n_prefix: int) -> NDArray[np.bool_]:
        """``(s, n_prefix + s)`` which token reads which."""
        s = len(self.ids)
        mine = self.owner[:, None] == self.owner[None, :]
        mine &= (self.branch[None, :] == -1) | (self.branch[:, None] == self.branch[None, :])
        mine &= np.tri(s, dtype=bool)
        return np.concatenate([np.ones((s, n_prefix), dtype=bool), mine], axis=1)

    def summed(self, logprobs: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Log-probability of each option, by question.

        Args:
            logprobs: ``(t,)`` of the targets.
        """
        starts = np.cumsum((0, *self.n_options))
        total = np.zeros(starts[-1])
        np.add.at(total, self.options[~self.shared], logprobs[~self.shared])
        made = []
        for first, last in pairwise(starts):
            common = logprobs[self.shared & (self.options == first)].sum()
            made.append(total[first:last] + common)
        return made


def groups(every: Sequence[Encoded], *, batch_size: int | None, budget: int) -> list[Group]:
    """All questions in packs, the longest first: what is too large for the machine fails at once.

    Args:
        every: the questions.
        batch_size: how many go together; None to fill packs up to the budget.
        budget: tokens to be computed together where no ``batch_size`` is given.
    """
    alike: dict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(every):
        alike[one.question.head(one.context.n_shots)].append(at)
    made, alone = [], []
    for members in alike.values():
        prefix = shared_prefix([every[at].context.ids for at in members]) if len(members) > 1 else ()
        if len(prefix) < WORTH_SHARING:
            alone += members
        else:
            made.append(_group(every, members, prefix, batch_size, budget))
    if alone:
        made.append(_group(every, sorted(alone), (), batch_size, budget))
    return sorted(made, key=lambda group: -max(every[pack[0]].length for pack in group.packs))


def shared_prefix(contexts: Sequence[Ids]) -> Ids:
    """The tokens that contexts begin with alike, so that at least one is left of each."""
    common = _alike(min(contexts), max(contexts))
    return common[: min(map(len, contexts)) - 1]


def packed(members: Sequence[Encoded], n_prefix: int) -> Packed:
    """Some questions as one row.

    Args:
        members: which.
        n_prefix: how many tokens of each context are computed before.
    """
    ids: list[int] = []
    positions: list[int] = []
    owner: list[int] = []
    branch: list[int] = []
    told: list[tuple[int, int, int, bool]] = []
    n_before = 0
    for number, one in enumerate(members):
        common = common_start(one.options)
        trunk = (*one.context.ids[n_prefix:], *common)
        here = len(ids)
        last = here + len(trunk) - 1
        ids += trunk
        positions += range(n_prefix, n_prefix + len(trunk))
        branch += [-1] * len(trunk)
        told += [(last - len(common) + k, token, n_before, True) for k, token in enumerate(common)]
        for option, whole in enumerate(one.options):
            rest = whole[len(common) :]
            first = len(ids)
            places = [last, *range(first, first + len(rest) - 1)]
            told += [(place, token, n_before + option, False) for place, token in zip(places, rest, strict=True)]
            ids += rest[:-1]
            positions += range(n_prefix + len(trunk), n_prefix + len(trunk) + len(rest) - 1)
            branch += [option] * (len(rest) - 1)
        owner += [number] * (len(ids) - here)
        n_before += len(one.options)
    predictors, targets, options, shared = zip(*told, strict=True)
    return Packed(
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


def common_start(options: Sequence[Ids]) -> Ids:
    """What options begin with alike, so that at least one token is left of each."""
    common = _alike(min(options), max(options))
    return common[: min(map(len, options)) - 1]


def _alike(one: Ids, other: Ids) -> Ids:
    n = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:n]


def n_computed(one: Encoded, n_prefix: int) -> int:
    """Tokens that are computed for a question in a pack."""
    common = len(common_start(one.options))
    return len(one.context.ids) - n_prefix + common + sum(len(option) - common - 1 for option in one.options)


def _group(every: Sequence[Encoded], members: Sequence[int], prefix: Ids, batch_size: int | None, budget: int) -> Group:
    costs = {at: n_computed(every[at], len(prefix)) for at in members}
    order = sorted(members, key=lambda at: (-costs[at], at))
    return Group(prefix=prefix, packs=list(_cut(order, costs, batch_size, budget)))


def _cut(order: Sequence[int], costs: dict[int, int], batch_size: int | None, budget: int) -> Iterator[list[int]]:
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
