"""How long rows are, what they need, and in which order they are computed on an accelerator.

Where no CUDA device is at hand, the same code runs on the CPU under another name of it, and tests of CUDA are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from model_families import build_family
from option_prompts import make_prompts

torch = pytest.importorskip("torch")

from tracker.evaluating.local import option_scorer, row_choice, row_scorer  # noqa: E402
from tracker.evaluating.local.loading import LanguageModel  # noqa: E402
from tracker.evaluating.local.memory import count_free_bytes  # noqa: E402
from tracker.evaluating.local.option_scorer import OptionScorer  # noqa: E402
from tracker.evaluating.local.packing import count_computed_tokens  # noqa: E402
from tracker.evaluating.local.padded_rows import score_option_by_option  # noqa: E402
from tracker.evaluating.local.row_choice import choose_row_size, estimate_row_bytes, prefers_flex  # noqa: E402
from tracker.evaluating.local.row_scorer import RowScorer  # noqa: E402
from tracker.evaluating.local.tokens import EncodedPrompt, encode_prompts  # noqa: E402

OTHER_CPU = "cpu:0"
"""A name of the CPU that is treated as an accelerator."""
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture(scope="module")
def gemma(model_of: Callable[[str], LanguageModel]) -> LanguageModel:
    gpt2 = model_of("gpt2")
    model = build_family("gemma2", len(gpt2.tokenizer), hidden_size=64, head_dim=16, query_pre_attn_scalar=16)
    return replace(gpt2, name="gemma2", model=model, context=2_048)


def encode(model: LanguageModel, n: int = 6) -> list[EncodedPrompt]:
    return encode_prompts(model, make_prompts(n), chat=False)


def logprobs_of(scorer: OptionScorer) -> dict[int, Any]:
    return {r.prompt_id: r.logprobs for some in scorer.respond(make_prompts(18), lambda _: False) for r in some}


class TestOrder:
    def test_a_row_is_enqueued_before_the_last_one_is_awaited(
        self, gemma: LanguageModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = logprobs_of(OptionScorer(gemma, method="loglikelihood", batch_size=4))
        events: list[tuple[str, int]] = []
        submit, collect = RowScorer.submit, row_scorer.RowInFlight.collect

        def record_submit(self: RowScorer, members: list[EncodedPrompt]) -> row_scorer.RowInFlight:
            events.append(("submit", members[0].prompt.prompt_id))
            return submit(self, members)

        def record_collect(self: row_scorer.RowInFlight) -> row_scorer.Scored:
            events.append(("collect", self.members[0].prompt.prompt_id))
            return collect(self)

        monkeypatch.setattr(RowScorer, "submit", record_submit)
        monkeypatch.setattr(row_scorer.RowInFlight, "collect", record_collect)
        for device, lag in (("cpu", 0), (OTHER_CPU, 1)):
            monkeypatch.setattr(option_scorer, "find_route", lambda *_: "builders")
            events.clear()
            scores = logprobs_of(OptionScorer(replace(gemma, device=device), method="loglikelihood", batch_size=4))
            assert {key: value.tobytes() for key, value in scores.items()} == {
                key: value.tobytes() for key, value in expected.items()
            }
            rows = [number for event, number in events if event == "submit"]
            assert [number for event, number in events if event == "collect"] == rows
            assert len(rows) > 4
            in_flight = [
                sum(1 if event == "submit" else -1 for event, _ in events[:n]) for n in range(1, len(events) + 1)
            ]
            assert max(in_flight) == 1 + lag

    def test_a_model_on_several_devices_returns_all_logits(
        self, gemma: LanguageModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        members = encode(gemma)
        expected = RowScorer(gemma, (), "builders").submit(members).collect()
        monkeypatch.setattr(gemma.model, "hf_device_map", {"model": 0, "lm_head": 1}, raising=False)
        rows = RowScorer(gemma, (), "builders")
        assert rows.keeps
        assert not rows.keeps_places
        for (_, logprobs), (_, numbers) in zip(rows.submit(members).collect(), expected, strict=True):
            np.testing.assert_allclose(logprobs, numbers, atol=1e-5)

    def test_vectors_reach_the_device_in_one_copy(self) -> None:
        first, second = row_scorer._send("cpu", np.arange(3), np.arange(5, 7))
        assert (first.tolist(), second.tolist()) == ([0, 1, 2], [5, 6])


class TestRowSize:
    @pytest.mark.parametrize(
        ("free", "hidden", "is_dense", "size"),
        [
            (None, 4_096, True, 2_048),
            (10**12, 1_024, True, 2_048),
            (10**12, 2_048, True, 4_096),
            (10**12, 4_096, True, 8_192),
            (10**12, 16_384, True, 16_384),
            (10**12, 1_024, False, 16_384),
            (10**6, 8_192, True, 2_048),
        ],
    )
    def test_the_size_grows_with_memory_and_with_the_model(
        self, gemma: LanguageModel, monkeypatch: pytest.MonkeyPatch, free: int | None, hidden: int, is_dense: bool,
        size: int,
    ) -> None:  # fmt: skip
        from transformers import LlamaConfig, LlamaForCausalLM

        with torch.device("meta"):
            model = LlamaForCausalLM(LlamaConfig(hidden_size=hidden, num_attention_heads=32, num_hidden_layers=1))
        monkeypatch.setattr(row_choice, "count_free_bytes", lambda _: free)
        assert choose_row_size(replace(gemma, model=model, device="cuda:0"), 1_000, is_dense=is_dense) == size
        assert choose_row_size(replace(gemma, model=model), 1_000, is_dense=is_dense) == row_choice.CPU_TOKENS

    def test_half_of_the_free_memory_suffices(self, gemma: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
        model = replace(gemma, device="cuda:0")
        for size in row_choice.ACCELERATOR_TOKENS[1:]:
            need = estimate_row_bytes(model, size, 500, is_dense=False)
            for free, expected in ((2 * need + 2, size), (2 * need - 2, size // 2)):
                monkeypatch.setattr(row_choice, "count_free_bytes", lambda _, free=free: free)
                assert choose_row_size(model, 500, is_dense=False) == expected

    @pytest.mark.soak
    @pytest.mark.parametrize("family", ["gemma2", "llama", "gpt2"])
    def test_the_estimate_covers_what_a_row_allocates(
        self, model_of: Callable[[str], LanguageModel], family: str
    ) -> None:
        gpt2 = model_of("gpt2")
        model = replace(gpt2, model=build_family(family, len(gpt2.tokenizer)), context=2_048)
        members = encode(model)
        rows = RowScorer(model, (), "builders")
        with torch.profiler.profile(profile_memory=True) as profile:
            rows.submit(members)
        changes = [event.nbytes() for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
        peak = np.cumsum(changes).max()
        n_tokens = sum(count_computed_tokens(member, 0) for member in members)
        estimate = estimate_row_bytes(model, n_tokens, 0, is_dense=True)
        assert n_tokens > 500
        assert peak <= estimate < 10 * peak

    def test_flex_attention_is_not_tried_without_cuda(self, gemma: LanguageModel) -> None:
        assert count_free_bytes("cpu") is None
        assert not prefers_flex(gemma, encode(gemma), 2_048, 4_096)


class TestFlexAttention:
    @pytest.mark.soak
    def test_a_row_with_flex_attention_on_a_cpu(self, gemma: LanguageModel) -> None:
        members = encode(gemma)
        expected = score_option_by_option(gemma, members)
        try:
            scored = RowScorer(gemma, (), "flex").submit(members).collect()
        except torch._dynamo.exc.BackendCompilerFailed as error:
            pytest.skip(f"FlexAttention cannot be compiled here: {str(error)[:80]}")
        assert gemma.model.config._attn_implementation != "flex_attention"
        for (_, logprobs), numbers in zip(scored, expected, strict=True):
            np.testing.assert_allclose(logprobs, numbers, atol=1e-4)


@needs_cuda
class TestCuda:
    """Only where a CUDA device is at hand."""

    @pytest.mark.parametrize("route", ["builders", "flex"])
    def test_rows_give_what_a_pass_per_option_gives(self, gemma: LanguageModel, route: row_scorer.MaskRoute) -> None:
        members = encode(gemma)
        expected = score_option_by_option(gemma, members)
        model = replace(gemma, model=gemma.model.to("cuda:0"), device="cuda:0")
        try:
            for part in (members, members[:3], members[1:]):
                scored = RowScorer(model, (), route).submit(part).collect()
                for member, logprobs in scored:
                    np.testing.assert_allclose(logprobs, expected[members.index(member)], atol=1e-3)
        finally:
            gemma.model.to("cpu")

    def test_free_memory_is_known(self) -> None:
        assert 0 < (count_free_bytes("cuda:0") or 0) <= torch.cuda.get_device_properties(0).total_memory
