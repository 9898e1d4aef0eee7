"""Checks of the options of tradeoff."""

from __future__ import annotations

from collections.abc import Sequence

from analyses.presentation.validation import ValidationErrors
from analyses.tradeoff.method import ChosenFindings, PointSelection
from analyses.tradeoff.summary import MAX_NAMES, SOCIAL_CHOICE
from tracker.name_lists import join_names
from tracker.queries.findings.finding_records import FindingRecord


def check_selection(
    records: Sequence[FindingRecord], names: Sequence[str], selection: PointSelection
) -> ValidationErrors:
    """Reasons why the selection of findings is invalid, each with what to do."""
    ids = [record.id for record in records]
    unknown_ids = [key for key in selection.ids if key not in ids]
    unknown_names = [name for name in selection.exclude if name not in names]
    return {
        f"No finding of {SOCIAL_CHOICE} is recorded yet. Run `suffrage analyze {SOCIAL_CHOICE} BENCHMARK` for some "
        "benchmarks, and `suffrage simulate constant` and `suffrage simulate random` for the baselines.": not records,
        f"Finding {unknown_ids[0] if unknown_ids else ''} is none of {SOCIAL_CHOICE}. `suffrage findings --name "
        f"{SOCIAL_CHOICE}` lists them.": bool(unknown_ids),
        f"No point is called {unknown_names[0] if unknown_names else ''!r}. Choose --exclude from: "
        f"{join_names(names, MAX_NAMES)}.": bool(unknown_names),
    }


def check_points(chosen: ChosenFindings) -> ValidationErrors:
    """The error where no finding suits."""
    reasons = [f"{name}: {reason}" for skipped in chosen.skipped.values() for name, reason in skipped.items()]
    example = f" ({reasons[0]})" if reasons else ""
    return {
        f"No finding of {SOCIAL_CHOICE} suits{example}. Run `suffrage analyze {SOCIAL_CHOICE} BENCHMARK` again, give "
        "the options with which findings were made, such as --columns raw, or choose findings by --finding-ids ID.": (
            not chosen.records
        )
    }
