"""Load completions of a table with missing scores, for an analysis of complete tables.

An analysis names the policies that it treats itself. Under each of the policies here, it otherwise runs under its
default policy, and again on completions of the table: ``bounds`` has up to four extreme ones, ``impute`` the imputed
one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracker.queries.selection import POLICIES, Policy, Selection

COMPLETED: tuple[Policy, ...] = ("bounds", "impute")
"""Policies that need no treatment by the analysis."""

Load = Callable[[Selection], Mapping[str, Any]]
"""Loads the inputs of an analysis for a selection, by name; an optional one that is not chosen is None."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The inputs of an analysis, with a score in place of each missing one.

    Attributes:
        label: what the missing scores are, such as ``all worst``.
        inputs: by name.
    """

    label: str
    inputs: Mapping[str, Any]

    @property
    def digests(self) -> tuple[str, ...]:
        """Digest of each input."""
        return tuple(loaded.digest for loaded in self.inputs.values() if loaded is not None)


def accepted_policies(treated: Collection[Policy]) -> tuple[Policy, ...]:
    """Return the policies that a user can choose, in the order of `POLICIES`.

    Args:
        treated: those that the analysis treats itself.
    """
    return tuple(name for name in POLICIES if name in treated or name in COMPLETED)


def load_completions(
    load: Load, selection: Selection, leaders: Sequence[str], measured: Mapping[str, Any]
) -> tuple[Completion, ...]:
    """Load the completions of a policy; equal ones once, none if no score is missing.

    Args:
        load: loads the inputs.
        selection: its policy is one of `COMPLETED`.
        measured: the inputs without completion.
        leaders: models that the leaderboard ranks first.

    Raises:
        SelectionError: the metric has no bounds, or too many scores are missing to impute them.
    """
    if selection.missing == "impute":
        completions = [Completion(label="imputed", inputs=load(selection))]
    else:
        completions = _load_extremes(load, replace(selection, missing="worst"), leaders)
    distinct: dict[tuple[str, ...], Completion] = {}
    for completion in (Completion(label="measured", inputs=measured), *completions):
        distinct.setdefault(completion.digests, completion)
    return tuple(distinct.values())[1:]


def _load_extremes(load: Load, worst: Selection, leaders: Sequence[str]) -> list[Completion]:
    """Return the extreme completions.

    Args:
        load: loads the inputs.
        worst: the selection under ``worst``.
        leaders: models that the leaderboard ranks first.
    """
    first = load(worst)
    models = {name for loaded in first.values() for name in getattr(loaded, "models", ())}
    choices = {"all best": models}
    if set(leaders) & models:
        choices |= {"leader worst, rest best": models - set(leaders), "leader best, rest worst": models & set(leaders)}
    return [
        Completion(label="all worst", inputs=first),
        *(
            Completion(label=label, inputs=load(replace(worst, favoured=tuple(sorted(favoured)))))
            for label, favoured in choices.items()
        ),
    ]
