"""Histories and options of which there is no drift to compute."""

from __future__ import annotations

from analyses.presentation.validation import ValidationErrors


def find_problems(n_series: int, benchmark: str, level: float) -> ValidationErrors:
    """Why there is no drift to speak of, and what to do about it."""
    return {
        f"No model has two runs on {benchmark or 'this benchmark'} under this metric, condition and variant, so "
        "there is no drift to measure. Ingest a later run; list the runs with `suffrage runs`": n_series == 0,
        f"level is {level:g}; it must be between 0 and 1, such as 0.95.": not 0 < level < 1,
    }
