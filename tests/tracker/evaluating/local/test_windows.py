"""Models with attention windows, and 40 families of models: packed rows give what a pass per option gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_families import SEPARATE, UNLIMITED, WINDOW, WINDOWED, build_family
from numpy.typing import NDArray
from option_prompts import make_prompts, plain
from test_options import ENCODED, as_encoded, attention_table

torch = pytest.importorskip("torch")

from tracker.evaluating.local import row_masks, row_scorer  # noqa: E402
from tracker.evaluating.local.loading import LanguageModel  # noqa: E402
from tracker.evaluating.local.option_scorer import OptionScorer  # noqa: E402
from tracker.evaluating.local.packing import find_shared_prefix, pack_row  # noqa: E402
from tracker.evaluating.local.row_masks import RowLayout, find_rope_limit, find_window, use_layout  # noqa: E402
from tracker.evaluating.local.row_scorer import RowScorer  # noqa: E402
from tracker.evaluating.local.tokens import encode_prompts  # noqa: E402
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt  # noqa: E402

ORDINARY = ("cohere2", "gemma2", "gemma3_text", "gpt_oss", "llama4_text", "mistral", "phi3")
"""Families of the ordinary run; the soak run has all."""
SEPARATELY = "cannot compute several prompts in one row: options are computed separately, which is slower"
PROMPTS = make_prompts(6)
Scores = dict[int, Any]


@pytest.fixture(scope="module")
def family_of(model_of: Callable[[str], LanguageModel]) -> Callable[..., LanguageModel]:
    """A tiny model of a family, with the tokenizer of another."""
    gpt2 = model_of("gpt2")

    def get(family: str, **more: Any) -> LanguageModel:
        model = build_family(family, len(gpt2.tokenizer), **more)
        return replace(gpt2, name=family, model=model, architecture=type(model).__name__, context=2_048)

    return get


def score(model: LanguageModel, prompts: Sequence[RenderedPrompt], **more: Any) -> tuple[Scores, list[str]]:
    warnings: list[str] = []
    scorer = OptionScorer(model, method="loglikelihood", report=warnings.append, **more)
    scores = {r.prompt_id: r.logprobs for some in scorer.respond(prompts, lambda _: False) for r in some}
    return scores, warnings


def check_scores(model: LanguageModel, prompts: Sequence[RenderedPrompt], scores: Scores) -> None:
    for prompt in prompts:
        expected = plain(model, prompt)
        np.testing.assert_allclose(scores[prompt.prompt_id], expected, atol=1e-4)
        assert scores[prompt.prompt_id].argmax() == expected.argmax()


class TestFamilies:
    @pytest.mark.parametrize(
        "family",
        [
            pytest.param(family, marks=() if family in ORDINARY else pytest.mark.soak)
            for family in (*WINDOWED, *UNLIMITED)
        ],
    )
    def test_a_row_gives_what_a_pass_per_option_gives(
        self, family_of: Callable[..., LanguageModel], family: str
    ) -> None:
        model = family_of(family)
        shortest = min(len(model.tokenizer(prompt.text()).input_ids) for prompt in PROMPTS if len(prompt.examples) > 1)
        assert shortest > 3 * WINDOW
        scores, warnings = score(model, PROMPTS)
        assert not warnings
        check_scores(model, PROMPTS, scores)

    @pytest.mark.soak
    @pytest.mark.parametrize("family", SEPARATE)
    def test_families_that_count_places_in_the_row_are_computed_separately(
        self, family_of: Callable[..., LanguageModel], family: str
    ) -> None:
        model = family_of(family)
        scores, warnings = score(model, PROMPTS)
        assert warnings == [f"{family} {SEPARATELY}"]
        check_scores(model, PROMPTS, scores)

    def test_there_are_40_families_and_17_have_a_window(self) -> None:
        assert len(WINDOWED) >= 17
        assert len(WINDOWED) + len(UNLIMITED) >= 40
        assert set(ORDINARY) <= set(WINDOWED)


class TestWindows:
    """The window matters in these tests, and a window at the wrong place is found."""

    def test_the_window_changes_the_scores(self, family_of: Callable[..., LanguageModel]) -> None:
        narrow, wide = (score(family_of("mistral", sliding_window=size), PROMPTS)[0] for size in (WINDOW, 2_000))
        assert min(np.abs(narrow[key] - wide[key]).max() for key in narrow) > 0.01

    @pytest.mark.parametrize("family", ["gemma2", "llama4_text"])
    def test_a_window_counted_along_the_row_is_found(
        self, family_of: Callable[..., LanguageModel], monkeypatch: pytest.MonkeyPatch, family: str
    ) -> None:
        def restrict_by_place(self: RowLayout, mask_function: row_masks.MaskFunction) -> row_masks.MaskFunction:
            by_place = replace(self, positions=torch.arange(len(self.positions)))
            return restrict(by_place, mask_function)

        restrict = RowLayout.restrict
        monkeypatch.setattr(RowLayout, "restrict", restrict_by_place)
        scores, warnings = score(family_of(family), PROMPTS)
        assert warnings == [f"{family} {SEPARATELY}"]
        check_scores(family_of(family), PROMPTS, scores)

    def test_a_prefix_cut_to_the_window_is_found(
        self, family_of: Callable[..., LanguageModel], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def cut_prefix(self: row_scorer.RowScorer, prefix: tuple[int, ...]) -> Any:
            return self.model.model(input_ids=torch.tensor([prefix]), use_cache=True).past_key_values

        monkeypatch.setattr(row_scorer.RowScorer, "_compute_prefix", cut_prefix)
        scores, warnings = score(family_of("gemma2"), PROMPTS)
        assert warnings == [f"gemma2 {SEPARATELY}"]
        check_scores(family_of("gemma2"), PROMPTS, scores)

    def test_undefined_numbers_in_a_row_are_found(
        self, family_of: Callable[..., LanguageModel], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        collect = row_scorer.RowInFlight.collect
        monkeypatch.setattr(
            row_scorer.RowInFlight, "collect", lambda self: [(member, n * np.nan) for member, n in collect(self)]
        )
        scores, warnings = score(family_of("mistral"), PROMPTS)
        assert warnings == [f"mistral {SEPARATELY}"]
        check_scores(family_of("mistral"), PROMPTS, scores)

    def test_prompts_without_a_common_prefix_and_every_batch_size(
        self, family_of: Callable[..., LanguageModel]
    ) -> None:
        model = family_of("gemma3_text")
        prompts = [replace(prompt, header=f"{prompt.prompt_id} ") for prompt in PROMPTS]
        for size in (None, 4):
            scores, warnings = score(model, prompts, batch_size=size)
            assert not warnings
            check_scores(model, prompts, scores)

    def test_a_prompt_of_one_token_does_not_hide_that_prefixes_are_wrong(
        self, family_of: Callable[..., LanguageModel]
    ) -> None:
        """Options of one token without a prefix are right even for Bloom, which counts places in the row."""
        tiny = replace(PROMPTS[0], prompt_id=99, header="", examples=(), question="a")
        prompts = [replace(prompt, options=("A", "B", "C")) for prompt in (tiny, *PROMPTS)]
        model = family_of("bloom")
        scores, warnings = score(model, prompts)
        assert warnings == [f"bloom {SEPARATELY}"]
        check_scores(model, prompts, scores)

    @pytest.mark.parametrize(
        ("kind", "settings", "window"),
        [
            ("Gemma3Config", {"text_config": {"sliding_window": 24}}, 24),
            ("Llama4TextConfig", {"attention_chunk_size": 24}, 24),
            ("Qwen2MoeConfig", {"use_sliding_window": False}, None),
            ("GPT2Config", {}, None),
            ("Qwen2Config", {"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]}, 0),
        ],
    )
    def test_windows_by_other_names(self, kind: str, settings: dict[str, Any], window: int | None) -> None:
        import transformers

        assert find_window(getattr(transformers, kind)(**settings)) == window


class TestEncodingsByLength:
    """Where a text's length decides how its positions are encoded, long prompts are computed one row at a time."""

    @pytest.mark.parametrize(
        ("family", "rope"),
        [
            ("llama", {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}),
            (
                "phi3",
                {
                    "rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [3.0] * 4, "rope_theta": 1e4,
                    "original_max_position_embeddings": 150,
                },
            ),
        ],
    )  # fmt: skip
    def test_long_prompts_are_computed_alone_and_short_ones_in_rows(
        self, family_of: Callable[..., LanguageModel], family: str, rope: dict[str, Any]
    ) -> None:
        more = {"max_position_embeddings": 150} if rope["rope_type"] == "dynamic" else {}
        model = family_of(family, rope_parameters=rope, original_max_position_embeddings=150, **more)
        assert find_rope_limit(model.model.config) == 150
        prompts = make_prompts(5)
        scores, warnings = score(model, prompts)
        n_long = int(warnings[0].split("options of ")[1].split()[0])
        assert warnings == [
            f"{family} encodes positions differently beyond 150 tokens: the options of {n_long} prompts are computed "
            "separately, which is slower"
        ]
        assert 0 < n_long < len(prompts)
        for prompt in prompts:
            for option, logprob in zip(prompt.options, scores[prompt.prompt_id], strict=True):
                # the encoding of a loaded model depends on what it computed before, and on every token it is given
                fresh = family_of(family, rope_parameters=rope, original_max_position_embeddings=150, **more)
                before = fresh.tokenizer(prompt.text()).input_ids
                whole = fresh.tokenizer(prompt.text() + prompt.join + option).input_ids
                logits = fresh.model(torch.tensor([whole[:-1]])).logits[0, len(before) - 1 :].log_softmax(-1)
                expected = logits[range(len(whole) - len(before)), whole[len(before) :]].sum()
                assert logprob == pytest.approx(float(expected), abs=1e-4)


class TestMasks:
    @settings(max_examples=30)
    @given(st.lists(ENCODED, min_size=1, max_size=4), st.integers(1, 8))
    def test_masks_equal_the_table_of_who_reads_whom(self, parts: Any, window: int) -> None:
        members = [as_encoded(n, ids, options) for n, (ids, options) in enumerate(parts)]
        n_prefix = len(find_shared_prefix([member.context.ids for member in members])) if len(members) > 1 else 0
        row = pack_row(members, n_prefix)
        nobody = np.full(n_prefix, -1)
        layout = RowLayout(
            owner=torch.from_numpy(np.concatenate([nobody, row.owner])),
            branch=torch.from_numpy(np.concatenate([nobody, row.branch])),
            positions=torch.from_numpy(np.concatenate([np.arange(n_prefix), row.positions])),
            n_prefix=n_prefix,
        )
        mask = layout.causal_mask(torch.float32)[0, 0].numpy()
        np.testing.assert_array_equal(mask == 0, attention_table(row, n_prefix))
        assert (mask[mask != 0] == np.finfo(np.float32).min).all()
        keys = torch.arange(len(layout.positions))
        near = layout.restrict(lambda _b, _h, query, key: (key <= query) & (query - key < window))
        np.testing.assert_array_equal(
            near(None, None, keys[n_prefix:, None], keys).numpy(), attention_table(row, n_prefix, window)
        )

    @pytest.mark.parametrize("family", ["mistral", "gemma3_text"])
    def test_blocks_of_queries_only_read_the_prefix_and_their_prompts(
        self, family_of: Callable[..., LanguageModel], monkeypatch: pytest.MonkeyPatch, family: str
    ) -> None:
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as ATTENTION

        model = family_of(family)
        encoded = encode_prompts(model, PROMPTS, chat=False)
        prefix = encoded[0].context.ids[:20]
        members = [
            replace(prompt, context=replace(prompt.context, ids=prefix + prompt.context.ids)) for prompt in encoded
        ]
        usual = ATTENTION["sdpa"]
        n_keys: list[int] = []

        def attend(module: Any, query: Any, key: Any, *rest: Any, **arguments: Any) -> Any:
            n_keys.append(key.shape[2])
            return usual(module, query, key, *rest, **arguments)

        def compute(size: int) -> NDArray[np.float64]:
            monkeypatch.setattr(row_masks, "CPU_QUERIES", size)
            n_keys.clear()
            rows = RowScorer(model, prefix, "builders")
            return np.concatenate([logprobs for _, logprobs in rows.submit(members).collect()])

        monkeypatch.setitem(ATTENTION, "sdpa", attend)
        together = compute(10_000)
        n_all = max(n_keys)
        assert n_all > 500
        np.testing.assert_allclose(compute(50), together, atol=1e-5)
        owner = pack_row(members, 20).owner
        blocks = RowLayout(owner=torch.tensor(owner), branch=None, positions=owner, n_prefix=0).blocks
        assert max(block.start for block in blocks) > 100
        n_layers = model.model.config.num_hidden_layers
        assert sorted(n_keys) == sorted(n_layers * [20, *(20 + block.last - block.start for block in blocks)])

    @given(st.lists(st.integers(min_value=1, max_value=400), min_size=1, max_size=30), st.integers(0, 3))
    def test_blocks_cover_the_row_and_all_that_their_tokens_attend_to(self, sizes: list[int], n_prefix: int) -> None:
        owner = np.repeat(np.arange(len(sizes)), sizes)
        with_prefix = np.concatenate([np.full(n_prefix, -1), owner])
        layout = RowLayout(owner=torch.tensor(with_prefix), branch=None, positions=with_prefix, n_prefix=n_prefix)
        assert [at for block in layout.blocks for at in range(block.first, block.last)] == list(range(len(owner)))
        for block in layout.blocks:
            assert block.last - block.first <= row_masks.CPU_QUERIES
            attended = np.flatnonzero(np.isin(owner, owner[block.first : block.last]))
            assert block.start == attended[0]
            assert block.first == block.start or len(set(owner[block.start : block.last])) == 1
        keys = torch.arange(len(with_prefix))[None, None, :, None]
        for block in layout.blocks:
            expected = [*range(n_prefix), *range(n_prefix + block.start, n_prefix + block.last)]
            assert layout.cut_keys(keys, block)[0, 0, :, 0].tolist() == expected

    def test_replaced_functions_are_restored_after_the_last_row(self) -> None:
        from transformers import masking_utils
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        builders = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
        usual = ALL_ATTENTION_FUNCTIONS["sdpa"]
        before = {name: builders[name] for name in row_masks.IMPLEMENTATIONS}
        layout = RowLayout(owner=None, branch=None, positions=(), n_prefix=0)
        with use_layout(layout):
            with use_layout(layout):
                assert builders["sdpa"] is not before["sdpa"]
            assert builders["sdpa"] is not before["sdpa"]
            assert ALL_ATTENTION_FUNCTIONS["sdpa"] is not usual
        assert {name: builders[name] for name in row_masks.IMPLEMENTATIONS} == before
        assert ALL_ATTENTION_FUNCTIONS["sdpa"] is usual
