"""The benchmark of pair counts on CUDA devices: its code runs here on a CPU, and on a device where there is one."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra `gpu` is not installed")

from benchmarks import prompt_correlation_gpu  # noqa: E402
from benchmarks.__main__ import RESULTS  # noqa: E402
from benchmarks._page import PAGE, write_page  # noqa: E402
from benchmarks._peers import DeviceMissingError  # noqa: E402

SMALL = prompt_correlation_gpu.Size(n_prompts=60, n_models=9, n_first=20, n_permutations=5)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return list(prompt_correlation_gpu.measured("cpu", SMALL, "a CPU"))


class TestOnCpu:
    def test_every_row_is_measured(self, rows: list[dict[str, Any]]) -> None:
        names = [row["name"].partition(": ")[2] for row in rows]
        assert names[:3] == [
            "counts of all pairs",
            "mean similarity of each prompt to all others",
            "one permuted table",
        ]
        assert names[3] == "a test of 5 permutations, 1 workers"
        for row in rows:
            numbers = [value for value in row.values() if not isinstance(value, str)]
            assert all(math.isfinite(number) and number > 0 for number in numbers), row

    def test_the_page_shows_the_rows(self, rows: list[dict[str, Any]]) -> None:
        page = write_page({"prompt_correlation_gpu": {"measurements": rows}})
        assert page.count("| a CPU, 60 × 9: ") == len(rows)


class TestDevices:
    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
    def test_without_a_device_it_is_not_measured(self) -> None:
        with pytest.raises(DeviceMissingError, match="no CUDA device"):
            next(prompt_correlation_gpu.measurements())
        results = json.loads(RESULTS.read_text())
        page = PAGE.read_text()
        assert ("- a test of 64 permutations" in page) == ("prompt_correlation_gpu" not in results)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
    def test_on_a_device(self) -> None:
        rows = list(prompt_correlation_gpu.measured("cuda:0", SMALL, torch.cuda.get_device_name(0)))
        assert all(row["ours_s"] > 0 for row in rows)
