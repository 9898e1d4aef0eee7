"""The text of a finding: a headline, the evidence for it, and caveats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

MAX_HEADLINE_WORDS = 30
MAX_EVIDENCE = 5
MAX_CAVEATS = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of an analysis, for a reader in a hurry.

    Attributes:
        headline: the verdict in one sentence of at most 30 words.
        evidence: at most five sentences with the numbers behind the headline.
        caveats: at most three sentences on what limits the headline, the most important first.
        looks: how many recorded tests of the benchmark came before, and what Holm over all leaves; '' without a test.
            It is not stored, since later tests change it.
    """

    headline: str
    evidence: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    looks: str = ""

    @classmethod
    def from_columns(
        cls, headline: str | None, evidence: Sequence[str] | None, caveats: Sequence[str] | None
    ) -> Summary:
        """Build a summary from the columns of a finding; those of a failed one are null."""
        return cls(headline or "", tuple(evidence or ()), tuple(caveats or ()))

    def __str__(self) -> str:
        return " ".join([self.headline, *self.evidence, *self.caveats, *filter(None, [self.looks])])

    def add_caveats(self, warnings: Sequence[str]) -> tuple[Summary, tuple[str, ...]]:
        """Fill the free places for caveats with warnings; return the summary and the warnings that are left."""
        n_free = max(0, MAX_CAVEATS - len(self.caveats))
        return replace(self, caveats=(*self.caveats, *warnings[:n_free])), tuple(warnings[n_free:])

    def format_markdown(self) -> str:
        """Format as Markdown: the headline in bold, a list of evidence, a list of caveats."""
        parts = [f"**{self.headline}**", _format_list(self.evidence)]
        if self.caveats:
            parts.append(f"Caveats:\n\n{_format_list(self.caveats)}")
        parts.append(self.looks)
        return "\n\n".join(part for part in parts if part)


def _format_list(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
