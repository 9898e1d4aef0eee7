"""Reasons why a file is not of a format."""

from __future__ import annotations

from collections.abc import Iterable


class Mismatch(str):
    """Reason why a file is not of a format, and how close it comes.

    A format may return a plain text instead; its similarity is then 0.

    Attributes:
        similarity: share of the format's features that the file has, in [0, 1).
    """

    __slots__ = ("similarity",)

    similarity: float

    def __new__(cls, reason: str, similarity: float = 0.0) -> Mismatch:
        """Return the reason with its similarity."""
        mismatch = super().__new__(cls, reason)
        mismatch.similarity = similarity
        return mismatch


def first_missing(features: Iterable[tuple[bool, str]]) -> Mismatch | None:
    """Return the reason of the first missing feature; None if the file has all of them.

    Args:
        features: whether the file has each feature of a format, and the reason to report if it does not.
    """
    checks = list(features)
    reason = next((reason for present, reason in checks if not present), None)
    return None if reason is None else Mismatch(reason, sum(present for present, _ in checks) / len(checks))


def first_missing_key(keys: Iterable[str], names: Iterable[str]) -> Mismatch | None:
    """Return the reason of the first name that is no key at the start of a JSON file; None if all are.

    Args:
        keys: keys of the first object of the file.
        names: keys of a format.
    """
    present = set(keys)
    return first_missing((name in present, f"its first object has no key {name!r}") for name in names)
