"""The benchmark for CUDA devices: its code runs here on a CPU with a tiny model, and on a device where there is one."""

from __future__ import annotations

import json
import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers", reason="the extra `models` is not installed")
torch = pytest.importorskip("torch", reason="the extra `models` is not installed")

from benchmarks import _gpu_peers, evaluation_gpu  # noqa: E402
from benchmarks.__main__ import RESULTS  # noqa: E402
from benchmarks._page import PAGE, write_page  # noqa: E402
from benchmarks._peers import DeviceMissingError  # noqa: E402
from benchmarks._random_model import Shape, counted, random_model  # noqa: E402
from benchmarks.evaluation import prompts  # noqa: E402
from tracker.evaluating.local.generation import TextGenerator  # noqa: E402
from tracker.evaluating.responses import Sampling  # noqa: E402

TINY = Shape(
    width=32, inner=64, n_layers=1, n_heads=4, n_groups=2, n_words=6_000, context=1_024, n_prompts=4, n_generated=3,
    max_tokens=4, side=64, row_sizes=(600, 1_200),
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Any:
    return random_model("cpu", TINY)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """What the benchmark measures of a tiny model on a CPU, without peers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_gpu_peers, "find_spec", lambda _: None)
        return list(evaluation_gpu.measured("cpu", TINY, "a CPU"))


class TestOnCpu:
    def test_every_row_is_measured(self, rows: list[dict[str, Any]]) -> None:
        names = [row["name"].partition(": ")[2] for row in rows]
        assert len(rows) == 1 + 4 + len(TINY.row_sizes) + 1
        assert names[0] == "tokenising 4 prompts with 5 varying examples"
        assert sum("rows of" in name for name in names) == len(TINY.row_sizes)
        assert names[-1] == "generating 4 tokens for 3 prompts, 5 fixed examples"
        for row in rows:
            numbers = [value for value in row.values() if not isinstance(value, str)]
            assert all(math.isfinite(number) and number > 0 for number in numbers), row

    def test_shared_examples_are_computed_once(self, rows: list[dict[str, Any]]) -> None:
        fixed, varying = (row for row in rows if "by loglikelihood" in row["name"] and "rows of" not in row["name"])
        assert fixed["share_of_tokens_computed"] < varying["share_of_tokens_computed"]

    def test_the_page_shows_the_rows(self, rows: list[dict[str, Any]]) -> None:
        page = write_page({"evaluation_gpu": {"measurements": rows}})
        assert page.count("| a CPU, Llama of random weights") == len(rows)

    def test_tokens_are_counted(self, model: Any) -> None:
        rendered = prompts("loglikelihood", True, 1)
        generator = TextGenerator(model, Sampling(max_tokens=2))
        with counted(model) as count:
            evaluation_gpu.respond_to(generator, rendered)
        assert count.n_tokens >= sum(generator.n_tokens(rendered)) + 1


class TestPeers:
    def test_vllm_receives_tokens(self, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """With a stand-in for vLLM that checks its arguments."""
        calls: list[tuple[int, dict[str, Any]]] = []

        class LLM:
            def __init__(self, **options: Any) -> None:
                assert options["dtype"] == "bfloat16"
                assert options["max_model_len"] == TINY.context

            def generate(self, texts: list[Any], sampling: dict[str, Any], *, use_tqdm: bool) -> list[Any]:
                assert not use_tqdm
                assert all(isinstance(text["prompt_token_ids"][0], int) for text in texts)
                calls.append((len(texts), sampling))
                return texts

        monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM=LLM, SamplingParams=lambda **options: options))
        monkeypatch.setattr(_gpu_peers, "find_spec", lambda name: name == "vllm" or None)
        monkeypatch.setattr(_gpu_peers, "has_vllm", lambda _: True)
        bench = evaluation_gpu.Bench(model=model, shape=TINY, label="a CPU", rate=1e9)
        rendered = prompts("loglikelihood", True, 3)
        row = {"name": "options", "ours_s": 1.0}
        peers = evaluation_gpu.fastest(bench, _gpu_peers.option_peers(model, rendered))
        (measured,) = evaluation_gpu.beside(bench, row, peers, 2)
        assert measured["peer"] == "vLLM"
        assert calls[-1] == (8, {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0})
        list(evaluation_gpu.beside(bench, row, _gpu_peers.generation_peers(model, rendered, 4), 2))
        assert calls[-1] == (2, {"max_tokens": 4, "temperature": 0.0})

    @pytest.mark.soak
    def test_the_harness_computes_the_same_work(self, model: Any) -> None:
        pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed")
        rendered = prompts("loglikelihood", True, 2)
        assert len(_gpu_peers.harness_options(model, rendered, 4)(2)) == 8
        assert len(_gpu_peers.harness_generation(model, rendered, 2, 3)(2)) == 2


class TestDevices:
    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
    def test_without_a_device_it_is_not_measured(self) -> None:
        with pytest.raises(DeviceMissingError, match="no CUDA device"):
            next(evaluation_gpu.measurements())
        results = json.loads(RESULTS.read_text())
        page = PAGE.read_text()
        assert ("- generation of 128 tokens: not measured" in page) == ("evaluation_gpu" not in results)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
    def test_on_a_device(self) -> None:
        rows = list(evaluation_gpu.measured("cuda:0", TINY, torch.cuda.get_device_name(0)))
        assert all(row["ours_s"] > 0 for row in rows)
