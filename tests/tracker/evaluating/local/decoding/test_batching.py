"""Batches of prompts: which are computed together, and that each response is that of its prompt alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tracker.evaluating.local.decoding.batch_test import Batching, find_batching  # noqa: E402
from tracker.evaluating.local.decoding.batches import STEP_COST, cut_batches  # noqa: E402
from tracker.evaluating.local.decoding.decoder import Decoder  # noqa: E402
from tracker.evaluating.local.decoding.generate import pad_rows  # noqa: E402
from tracker.evaluating.local.decoding.prefix_cache import compute_prefix  # noqa: E402
from tracker.evaluating.local.generation import TextGenerator  # noqa: E402
from tracker.evaluating.local.loading import LanguageModel  # noqa: E402
from tracker.evaluating.local.packing import WORTH_SHARING  # noqa: E402
from tracker.evaluating.local.sampling import stream_key  # noqa: E402
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt  # noqa: E402
from tracker.evaluating.responses import Response, Sampling  # noqa: E402

EVERYTHING = Batching(together=True, padded=True, reuses=True)
PADDED = Batching(together=True, padded=True, reuses=False)
EQUAL = Batching(together=True, padded=False, reuses=False)
SINGLE = Batching(together=False, padded=False, reuses=False)
EXPECTED = {
    "llama": EVERYTHING, "gemma3_text": EVERYTHING, "llama4_text": EVERYTHING, "Bart": PADDED, "mamba": PADDED,
    "RecurrentGemma": EQUAL, "Phi3:longrope": EQUAL, "Rwkv": SINGLE,
}  # fmt: skip
"""Families of every kind, and what they compute correctly."""
GREEDY = Sampling(max_tokens=5)
SAMPLED = Sampling(max_tokens=5, temperature=1.0, n_trials=3, stop=("w1",))


def _words(rng: random.Random, n: int) -> str:
    return " ".join(f"w{rng.randrange(4, tiny_models.N_WORDS)}" for _ in range(n))


def _make_prompts(n_shared: int, n_alone: int) -> list[RenderedPrompt]:
    """Return prompts with the same examples and prompts without any, of different lengths."""
    rng = random.Random(0)
    examples = tuple(FewShotExample(question=_words(rng, 9), answer=_words(rng, 1)) for _ in range(5))
    return [
        RenderedPrompt(prompt_id=at, examples=examples if at < n_shared else (), question=_words(rng, 3 + 5 * (at % 9)))
        for at in range(n_shared + n_alone)
    ]


PROMPTS = _make_prompts(4, 3)


@pytest.fixture(scope="module")
def load() -> Callable[[str], LanguageModel]:
    loaded: dict[str, LanguageModel] = {}
    return lambda family: (
        loaded.setdefault(family, tiny_models.load(family)) if family not in loaded else loaded[family]
    )


def _respond(
    model: LanguageModel, sampling: Sampling, prompts: list[RenderedPrompt], **options: Any
) -> dict[tuple[int, int], Response]:
    generator = TextGenerator(model, sampling, **{"batch_size": 8, **options})
    batches = generator.respond(prompts, lambda _: False)
    return {(response.prompt_id, response.trial): response for batch in batches for response in batch}


def _respond_alone(model: LanguageModel, sampling: Sampling, prompts: list[RenderedPrompt]) -> dict[Any, Any]:
    """The slow, obvious version: one response at a time, and nothing is computed before."""
    decoder = Decoder(model, sampling)
    contexts = TextGenerator(model, sampling).encode_contexts(prompts)
    return {
        (prompt.prompt_id, trial): decoder.decode(
            [context.ids], [stream_key(sampling.seed, context.text, trial)], reuses=False
        )[0]
        for prompt, context in zip(prompts, contexts, strict=True)
        for trial in range(sampling.n_trials)
    }


def _fields(responses: dict[Any, Response]) -> dict[Any, Any]:
    return {
        key: (
            {"text": response.text, "reasoning": response.reasoning, "finish_reason": response.finish_reason},
            response.n_tokens_written,
        )
        for key, response in responses.items()
    }


class TestAgainstReference:
    @pytest.mark.parametrize("family", ["llama", "gemma3_text", "mamba", "RecurrentGemma", "Rwkv"])
    def test_responses_are_those_of_each_prompt_alone(self, family: str, load: Callable[[str], LanguageModel]) -> None:
        warnings: list[str] = []
        model = load(family)
        responses = _respond(model, GREEDY, PROMPTS, report=warnings.append)
        assert _fields(responses) == _respond_alone(model, GREEDY, PROMPTS)
        assert len({response.text for response in responses.values()}) > 4
        slower = {EQUAL: "equal length", SINGLE: "one at a time"}.get(EXPECTED[family])
        assert len(warnings) == (slower is not None)
        assert not slower or (family in warnings[0] and slower in warnings[0])

    @pytest.mark.parametrize("family", ["llama", "Bart"])
    def test_trials_read_their_prompt_once_and_end_by_themselves(
        self, family: str, load: Callable[[str], LanguageModel], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model, n_read = load(family), []
        reader = model.model.get_encoder() if model.is_encoder_decoder else model.model
        forward = reader.forward

        @wraps(forward)  # generation looks at its signature
        def count(*args: Any, **options: Any) -> Any:
            n_read.append(options["input_ids"].shape)
            return forward(*args, **options)

        prompts = PROMPTS[-2:]
        expected = _respond_alone(model, SAMPLED, prompts)
        generator = TextGenerator(model, SAMPLED, batch_size=8)
        list(generator.respond(prompts[:1], lambda _: False))
        monkeypatch.setattr(reader, "forward", count)
        responses = {
            (response.prompt_id, response.trial): response
            for batch in generator.respond(prompts, lambda _: False)
            for response in batch
        }
        assert _fields(responses) == expected
        longest = max(response.n_tokens_read for response in responses.values())
        assert [n_rows for n_rows, n_columns in n_read if n_columns >= longest - 1 and n_rows > 2] == []
        assert len({response.text for response in responses.values()}) > 2

    @pytest.mark.soak
    @pytest.mark.parametrize("family", tiny_models.FAMILIES)
    @pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
    def test_responses_of_every_family_are_those_of_each_prompt_alone(self, family: str, sampling: Sampling) -> None:
        model, prompts = tiny_models.load(family), _make_prompts(11, 9)
        warnings: list[str] = []
        responses = _respond(model, sampling, prompts, report=warnings.append)
        assert _fields(responses) == _respond_alone(model, sampling, prompts)
        assert bool(warnings) == (EXPECTED.get(family) in (EQUAL, SINGLE))


class TestFindBatching:
    @pytest.mark.parametrize("family", EXPECTED)
    def test_each_kind_of_model_is_found(self, family: str, load: Callable[[str], LanguageModel]) -> None:
        assert find_batching(load(family), tuple(range(4, 60)), n_longest=70) == EXPECTED[family]

    @pytest.mark.parametrize("family", ["llama", "RecurrentGemma"])
    def test_half_precision_is_no_error(self, family: str) -> None:
        model = tiny_models.load(family, "bfloat16")
        batching = find_batching(model, tuple(range(4, 60)), n_longest=70)
        assert (batching.together, batching.padded) == (EXPECTED[family].together, EXPECTED[family].padded)

    def test_a_prompt_of_one_token_is_enough(self, load: Callable[[str], LanguageModel]) -> None:
        assert find_batching(load("llama"), (5,), n_longest=9) == EVERYTHING
        assert find_batching(load("Rwkv"), (5,), n_longest=9) == SINGLE

    def test_positions_that_switch_with_the_length_matter_only_beyond_it(
        self, load: Callable[[str], LanguageModel]
    ) -> None:
        assert find_batching(load("Phi3:longrope"), tuple(range(4, 24)), n_longest=32) == EVERYTHING
        assert find_batching(load("Phi3:longrope"), tuple(range(4, 24)), n_longest=33) == EQUAL

    def test_exhausted_memory_is_no_verdict_about_the_model(
        self, load: Callable[[str], LanguageModel], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = load("llama")
        generate = model.model.generate

        def fail(**options: Any) -> Any:
            if len(options["input_ids"]) > 1:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return generate(**options)

        monkeypatch.setattr(model.model, "generate", fail)
        with pytest.raises(torch.OutOfMemoryError):
            find_batching(model, tuple(range(4, 60)), n_longest=70)


class TestPrefixCache:
    @pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss", "llama4_text", "Falcon:alibi", "gpt2"])
    @pytest.mark.parametrize("n_prefix", [3, 40])
    def test_logits_after_a_prefix_are_those_of_whole_rows(self, family: str, n_prefix: int) -> None:
        """The prefix is shorter and longer than the window, and rows differ by more than the short one."""
        model, rng = tiny_models.load(family), random.Random(1)
        prefix = tuple(rng.randrange(4, 96) for _ in range(n_prefix))
        rows = [prefix + tuple(rng.randrange(4, 96) for _ in range(n)) for n in (21, 1, 15)]
        ids, mask = pad_rows(model, rows, 0)
        cached = compute_prefix(model, prefix, 0)
        assert cached is not None
        for _ in range(2):  # a batch leaves the prefix as it is
            cache = cached.expand([ids.shape[1] - len(row) for row in rows])
            assert cache.get_seq_length() == n_prefix
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, n_prefix:]
            accepted = {} if family == "Falcon:alibi" else {"position_ids": positions}
            with torch.inference_mode():
                logits = model.model(ids[:, n_prefix:], attention_mask=mask, past_key_values=cache, **accepted).logits
                for row, after in zip(rows, logits[:, -1], strict=True):
                    whole = model.model(torch.tensor([row])).logits[0, -1]
                    torch.testing.assert_close(after, whole, atol=1e-4, rtol=0)

    def test_recurrent_models_and_encoder_decoders_share_none(self, load: Callable[[str], LanguageModel]) -> None:
        assert [compute_prefix(load(family), (4, 5), 0) for family in ("mamba", "RecurrentGemma", "Bart")] == [None] * 3


class TestCutBatches:
    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), min_size=1, max_size=30),
        st.integers(1, 6),
        st.integers(1, 30),
        st.sampled_from([EVERYTHING, PADDED, EQUAL, SINGLE]),
    )
    def test_each_prompt_is_in_one_batch_whose_prefix_it_has(
        self, rows: list[tuple[int, int]], size: int, max_tokens: int, batching: Batching
    ) -> None:
        contexts = [(*([head] * (10 * head)), *range(50, 50 + n)) for head, n in rows]
        heads = [str(head) for head, _ in rows]
        batches = cut_batches(contexts, heads, size=size, max_tokens=max_tokens, batching=batching)
        assert sorted(at for batch in batches for at in batch.members) == list(range(len(rows)))
        for batch in batches:
            lengths = [len(contexts[at]) for at in batch.members]
            assert len(batch.members) <= (size if batching.together else 1)
            assert lengths == sorted(lengths, reverse=True)
            assert batching.padded or len(set(lengths)) == 1
            assert all(contexts[at][: len(batch.prefix)] == batch.prefix for at in batch.members)
            assert all(len(contexts[at]) > len(batch.prefix) for at in batch.members)
            assert not batch.prefix or (batching.reuses and len(batch.prefix) >= WORTH_SHARING)
        prefixes = [batch.prefix for batch in batches]
        changes = sum(first != second for first, second in pairwise(prefixes))
        assert changes == len(set(prefixes)) - 1  # each prefix is computed once

    def test_a_small_group_shares_its_prefix_if_that_saves_more_than_a_smaller_batch_costs(self) -> None:
        contexts = [(*range(100), 200 + at) for at in range(2)]
        for n, prefix in ((100 // STEP_COST, tuple(range(100))), (100 // STEP_COST + 1, ())):
            batches = cut_batches(contexts, ["a", "a"], size=8, max_tokens=n, batching=EVERYTHING)
            assert [batch.prefix for batch in batches] == [prefix]


class TestShrinkingBatches:
    def test_rows_that_have_ended_are_not_computed(
        self, load: Callable[[str], LanguageModel], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = load("llama")
        sampling = Sampling(max_tokens=24, temperature=1.0, n_trials=8, stop=tuple(f"w{n}" for n in range(10, 20)))
        prompts = PROMPTS[-1:]
        expected = _respond_alone(model, sampling, prompts)
        sizes: list[int] = []
        forward = model.model.forward

        @wraps(forward)  # generation looks at its signature
        def count(*args: Any, **options: Any) -> Any:
            sizes.append(len(options["input_ids"]))
            return forward(*args, **options)

        monkeypatch.setattr(model.model, "forward", count)
        context = TextGenerator(model, sampling).encode_contexts(prompts)[0]
        streams = [stream_key(0, context.text, trial) for trial in range(8)]
        ended = Decoder(model, sampling).decode([context.ids] * 8, streams)
        assert ended == list(expected.values())
        n_steps = sorted((n for _, n in ended), reverse=True)
        assert n_steps[0] > n_steps[4]
        assert sizes[0] == 1  # the prompt
        assert sizes[1] == 8
        assert sizes[-1] < 8
        assert sizes[1:] == sorted(sizes[1:], reverse=True)
        assert {fields["finish_reason"] for fields, _ in ended} <= {"stop", "length"}


class TestResume:
    @pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
    def test_a_resumed_run_has_the_same_responses_in_bfloat16(self, sampling: Sampling) -> None:
        """Batches are the same whatever is stored, and so are the last digits."""
        model = tiny_models.load("llama", "bfloat16")
        whole = [
            _list(batch) for batch in TextGenerator(model, sampling, batch_size=6).respond(PROMPTS, lambda _: False)
        ]
        stored = {prompt_id for batch in whole[:2] for prompt_id, *_ in batch} | {whole[-1][0][0]}
        generator = TextGenerator(model, sampling, batch_size=6)
        rest = [_list(batch) for batch in generator.respond(PROMPTS, stored.__contains__)]
        assert rest == [batch for batch in whole if not {prompt_id for prompt_id, *_ in batch} <= stored]
        assert len(rest) < len(whole)

    def test_nothing_is_computed_if_everything_is_stored(
        self, load: Callable[[str], LanguageModel], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = load("llama")
        monkeypatch.setattr(model.model, "generate", None)
        assert list(TextGenerator(model, GREEDY).respond(PROMPTS, lambda _: True)) == []


def _list(batch: list[Response]) -> list[tuple[Any, ...]]:
    return [
        (response.prompt_id, response.trial, response.text, response.finish_reason, response.n_tokens_written)
        for response in batch
    ]
