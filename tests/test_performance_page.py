"""docs/performance.md holds what benchmarks/results.json holds, beside the strongest peer."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import RESULTS
from benchmarks._page import PAGE, format_seconds, write_page


@pytest.fixture
def results() -> dict:
    return json.loads(RESULTS.read_text())


def table_rows(page: str) -> list[list[str]]:
    return [
        line.strip("| ").split(" | ")
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith("| what ")
    ]


def test_the_page_is_what_the_script_writes(results):
    assert PAGE.read_text() == write_page(results), "run `python -m benchmarks page`"


def test_every_measurement_has_a_row(results):
    n_measurements = sum(len(result["measurements"]) for result in results.values())
    assert len(table_rows(PAGE.read_text())) == n_measurements


def test_rows_that_favour_the_peer_are_shown():
    row = {"name": "order, smallest distance", "ours_s": 6.5, "peer_s": 3.8, "ratio": 0.6}
    page = write_page({"benchmark_growth": {"measurements": [row]}})
    assert "| order, smallest distance | 6.5 s | NumPy, all similarities at once | 3.8 s | 0.6 |" in page


def test_only_the_strongest_peer_is_upright():
    page = write_page(
        {
            "densities": {
                "measurements": [
                    {"name": "density, beside slow", "ours_s": 1.0, "peer_s": 30.0, "ratio": 30},
                    {"name": "density, beside fast", "ours_s": 1.0, "peer_s": 2.0, "ratio": 2},
                ]
            }
        }
    )
    assert [row[0] for row in table_rows(page)] == ["*density*", "density"]
    assert "| density | 1.0 s | fast | 2.0 s | 2.0 |" in page


def test_the_faster_of_the_runs_of_a_peer_gives_the_ratio():
    row = {"name": "sweep", "ours_s": 1.0, "peer_s": 4.0, "ratio": 4, "peer_one_thread_s": 2.0, "ratio_one_thread": 2}
    page = write_page({"prompt_clusters": {"measurements": [row]}})
    assert "| sweep | 1.0 s | scikit-learn | 2.0 s | 2.0 | peer all threads s: 4 |" in page


@pytest.mark.parametrize(
    ("seconds", "text"), [(8e-05, "0.08 ms"), (0.0135, "14 ms"), (1.04, "1.0 s"), (8653, "8,653 s")]
)
def test_times_have_units(seconds, text):
    assert format_seconds(seconds) == text
