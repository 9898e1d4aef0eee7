"""Load completions of a table with missing scores, for an analysis of complete tables.

An analysis names the policies that it treats itself. Under each of the policies here, it otherwise runs under its
default policy, and again on completions of the table: ``bounds`` has up to four extreme ones, ``impute`` the imputed
one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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


def load_completions(load: Load, selection: Selection, measured: Mapping[str, Any]) -> tuple[Completion, ...]:
    """Load the completions of a policy; equal ones once, none if no score is missing.

    Args:
        load: loads the inputs.
        selection: its policy is one of `COMPLETED`.
        measured: the inputs without completion; the leaders have the best mean of their scores.

    Raises:
        SelectionError: the metric has no bounds, or too many scores are missing to impute them.
    """
    known = Completion(label="measured", inputs=measured)
    if selection.missing == "impute":
        completions = [Completion(label="imputed", inputs=load(selection))]
    else:
        worst = replace(selection, missing="worst", favoured=())
        completions = [Completion(label="all worst", inputs=load(worst))]
        if completions[0].digests == known.digests:
            return ()
        leaders = next((loaded.leaders for loaded in measured.values() if getattr(loaded, "leaders", ())), ())
        for label, favoured in _list_extremes(completions[0].inputs, set(leaders)).items():
            inputs = load(replace(worst, favoured=tuple(sorted(favoured))))
            completions.append(Completion(label=label, inputs=inputs))
    distinct: dict[tuple[str, ...], Completion] = {}
    for completion in (known, *completions):
        distinct.setdefault(completion.digests, completion)
    return tuple(distinct.values())[1:]


def _list_extremes(inputs: Mapping[str, Any], leaders: set[str]) -> dict[str, set[str]]:
    """Return the models whose missing scores are the best ones, by label of the completion.

    Args:
        inputs: of any completion.
        leaders: names of models.
    """
    models = {name for loaded in inputs.values() for name in getattr(loaded, "models", ())}
    if not leaders & models:
        return {"all best": models}
    return {
        "all best": models,
        "leader worst, rest best": models - leaders,
        "leader best, rest worst": models & leaders,
    }
