"""The verdict as tags of an MLflow run, for reports and for recorded verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CHOICES = "choices"
"""Name of the table of a recorded verdict with the choices that could change the first place."""
CHOICES_FILE = f"{CHOICES}.parquet"


def make_verdict_tags(
    headline: str,
    leaders: Sequence[str],
    n_may_lead: int | None,
    margin: float | None,
    changes: Mapping[str, str],
) -> dict[str, str]:
    """Return the headline, the leader, and for each choice whether it changes the first place.

    Args:
        headline: of the verdict.
        leaders: names of the models that are first.
        n_may_lead: models that may be first; None if that is not tested.
        margin: how far the first mean is ahead of the next; None with fewer than two ranks.
        changes: a `LeaderChange` by the topic of the choice.
    """
    tags = {"suffrage.verdict": headline, "suffrage.verdict.leader": ", ".join(leaders)}
    if n_may_lead is not None:
        tags["suffrage.verdict.n_may_lead"] = str(n_may_lead)
    if margin is not None:
        tags["suffrage.verdict.margin"] = f"{margin:.6g}"
    return tags | {f"suffrage.verdict.changes.{topic.replace(' ', '_')}": value for topic, value in changes.items()}
