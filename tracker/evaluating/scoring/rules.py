"""Rules by which generated answers are scored, and presets of them for published benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from tracker.evaluating.scoring.pass_at_k import CORRECTNESS, parse_k

WHOLE_REFERENCE = "none"
"""Value of ``extract_reference`` that compares with the whole reference answer."""
_NUMBER = r"(-?\$?\d+(?:,\d{3})*(?:\.\d+)?)"
_BOXED = r"\\boxed\s*\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoringRules:
    """How generated answers are scored.

    Attributes:
        metrics: names, such as ``exact_match``.
        extract: pattern that extracts the answer from the response; None for the whole response.
        extract_reference: pattern that extracts the answer from a reference answer; ``none`` for the whole reference;
            None for the pattern of ``extract``. A reference in which it has no match is used whole.
        ignore: differences that the comparison ignores.
    """

    metrics: tuple[str, ...] = ("exact_match",)
    extract: str | None = None
    extract_reference: str | None = None
    ignore: tuple[str, ...] = ()

    @property
    def trial_metrics(self) -> tuple[str, ...]:
        """Return the metrics over all trials of a prompt: ``pass@k``."""
        return tuple(name for name in self.metrics if parse_k(name) is not None)

    @property
    def response_metrics(self) -> tuple[str, ...]:
        """Return the metrics of single responses."""
        return tuple(name for name in self.metrics if parse_k(name) is None)

    @property
    def correctness(self) -> str:
        """Return the metric that decides whether a response is correct; '' without one."""
        return next((name for name in self.response_metrics if name in CORRECTNESS), "")

    @property
    def reference_pattern(self) -> str | None:
        """Return the pattern that is applied to reference answers; None to use them whole."""
        pattern = self.extract_reference or self.extract
        return None if pattern == WHOLE_REFERENCE else pattern


DEFAULT = ScoringRules()
PRESETS: Mapping[str, ScoringRules] = MappingProxyType(
    {
        "gsm8k": ScoringRules(extract=f"####\\s*{_NUMBER}", ignore=("number-format",)),
        "last-number": ScoringRules(extract=_NUMBER, extract_reference=f"####\\s*{_NUMBER}", ignore=("number-format",)),
        "boxed": ScoringRules(metrics=("math_verify",), extract=_BOXED),
    }
)
"""Rules by name: GSM8K's number after ``####``; the last number; the last ``\\boxed{}`` of MATH."""


def choose_rules(preset: str | None, rules: ScoringRules) -> ScoringRules:
    """Return the rules of a preset, with those values replaced that differ from the default."""
    chosen = DEFAULT if preset is None else PRESETS[preset]
    names = [field.name for field in fields(ScoringRules)]
    explicit = {name: getattr(rules, name) for name in names if getattr(rules, name) != getattr(DEFAULT, name)}
    merged = ScoringRules(**{name: explicit.get(name, getattr(chosen, name)) for name in names})
    return merged if merged.response_metrics else replace(merged, metrics=(*chosen.metrics, *merged.metrics))
