"""Log-probabilities of options: of many prompts in one row, and each as a plain loop has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from option_prompts import WORDS, make_prompts, plain, plain_labels, sum_tokens

torch = pytest.importorskip("torch")

from tracker.errors import SelectionError  # noqa: E402
from tracker.evaluating.local import row_scorer  # noqa: E402
from tracker.evaluating.local.loading import LanguageModel, load_language_model  # noqa: E402
from tracker.evaluating.local.memory import process_in_halves  # noqa: E402
from tracker.evaluating.local.option_scorer import OptionScorer  # noqa: E402
from tracker.evaluating.local.packing import (  # noqa: E402
    PREFIX_COST,
    WORTH_SHARING,
    PackedRow,
    find_prefix_groups,
    find_shared_prefix,
    group_by_prefix,
    pack_row,
)
from tracker.evaluating.local.tokens import Context, EncodedPrompt, encode_prompts  # noqa: E402
from tracker.evaluating.prompt_templates.rendered_prompt import RenderedPrompt  # noqa: E402

SIZES = (None, 1, 4, 100)
FAMILIES = ("gpt2", "llama", "qwen2", "t5")
SEPARATELY = "cannot compute several prompts in one row: options are computed separately, which is slower"


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest, model_of: Callable[[str], LanguageModel]) -> LanguageModel:
    return model_of(request.param)


def scored(model: LanguageModel, prompts: list[RenderedPrompt], **more: Any) -> dict[int, NDArray[np.float64]]:
    warnings: list[str] = []
    scorer = OptionScorer(model, **{"method": "loglikelihood", "report": warnings.append, **more})
    scores = [response for some in scorer.respond(prompts, lambda _: False) for response in some]
    assert sorted(response.prompt_id for response in scores) == [prompt.prompt_id for prompt in prompts]
    assert warnings == more.get("notes", [])
    return {response.prompt_id: response.logprobs for response in scores if response.logprobs is not None}


class TestAgainstReference:
    @pytest.mark.parametrize("letters", [True, False])
    def test_every_family_and_batch_size_gives_what_a_loop_over_options_gives(
        self, model: LanguageModel, letters: bool
    ) -> None:
        prompts = make_prompts(9, letters=letters)
        expected = {prompt.prompt_id: (plain_labels if letters else plain)(model, prompt) for prompt in prompts}
        for size in SIZES:
            scores = scored(model, prompts, method="letters" if letters else "loglikelihood", batch_size=size)
            for key, numbers in expected.items():
                assert scores[key] == pytest.approx(numbers, abs=1e-4), (size, key)

    def test_labels_alone_are_the_tokens_that_the_authors_of_smart_take(
        self, model_of: Callable[[str], LanguageModel]
    ) -> None:
        for family in ("gpt2", "llama"):
            model = model_of(family)
            prompt = replace(make_prompts(1, letters=True)[0], join="")
            with torch.inference_mode():
                logits = model.model(**model.tokenizer(prompt.text(), return_tensors="pt")).logits[0, -1]
            tokens = [model.tokenizer(label).input_ids[-1] for label in prompt.options]
            scores = scored(model, [prompt], method="letters", isolated_labels=True)[1]
            assert scores == pytest.approx(logits.log_softmax(-1)[tokens].double().numpy(), abs=1e-4)

    def test_the_end_that_a_tokenizer_puts_behind_every_text_is_not_shown(
        self, model_of: Callable[[str], LanguageModel], language_model_folders: dict[str, Path], tmp_path: Path
    ) -> None:
        """Tokenizers of some models, and BERT's where a model writes with it, end whatever they are given."""
        import json
        import shutil

        folder = tmp_path / "ends"
        shutil.copytree(language_model_folders["llama"], folder)
        file = folder / "tokenizer.json"
        content = json.loads(file.read_text(encoding="utf-8"))
        content["post_processor"]["single"].append({"SpecialToken": {"id": "</s>", "type_id": 0}})
        content["post_processor"]["special_tokens"]["</s>"] = {"id": "</s>", "ids": [2], "tokens": ["</s>"]}
        file.write_text(json.dumps(content), encoding="utf-8")
        llama, ends = model_of("llama"), load_language_model(str(folder), device="cpu")
        assert ends.tokenizer("one")["input_ids"][-1] == 2
        for prompts in (make_prompts(6), make_prompts(6, letters=True)):
            assert [
                (encoded_member.context, encoded_member.options)
                for encoded_member in encode_prompts(ends, prompts, chat=False)
            ] == [
                (encoded_member.context, encoded_member.options)
                for encoded_member in encode_prompts(llama, prompts, chat=False)
            ]

    def test_a_conversation_is_put_in_the_models_own_words(self, model_of: Callable[[str], LanguageModel]) -> None:
        model = model_of("llama")
        prompt = make_prompts(6, letters=True)[5]
        content = model.tokenizer.apply_chat_template(prompt.messages(), add_generation_prompt=True, tokenize=False)
        assert content.count("<|user|>") == len(prompt.examples) + 1
        ids = model.tokenizer(content, add_special_tokens=False).input_ids
        whole = [model.tokenizer(content + label, add_special_tokens=False).input_ids for label in prompt.options]
        assert {len(encoded_member) for encoded_member in whole} == {len(ids) + 1}
        with torch.inference_mode():
            shares = model.model(torch.tensor([ids])).logits[0, -1].double().softmax(-1).numpy()
        scores = scored(model, [prompt], method="letters", chat=True)[prompt.prompt_id]
        assert scores == pytest.approx(sum_tokens(model, shares, prompt.options), abs=1e-4)


class TestOtherModels:
    """Models that cannot read several prompts in one row are found out, and asked option by option."""

    def test_positions_that_come_from_the_mask(self, model_of: Callable[[str], LanguageModel]) -> None:
        from transformers import BloomConfig, BloomForCausalLM

        torch.manual_seed(1)
        shape = BloomConfig(vocab_size=1600, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.3)
        model = replace(model_of("gpt2"), name="bloom", model=BloomForCausalLM(shape).eval(), context=None)
        warnings: list[str] = []
        prompts = make_prompts(5)
        scorer = OptionScorer(model, method="loglikelihood", report=warnings.append)
        scores = {r.prompt_id: r.logprobs for some in scorer.respond(prompts, lambda _: False) for r in some}
        assert warnings == [
            "bloom cannot compute several prompts in one row: options are computed separately, which is slower"
        ]
        for prompt in prompts:
            assert scores[prompt.prompt_id] == pytest.approx(plain(model, prompt), abs=1e-4)

    def test_a_window_that_is_counted_along_the_row(self, model_of: Callable[[str], LanguageModel]) -> None:
        """GPT-Neo's local layers count from the end of the row; its prompts alone are shorter than its window."""
        from transformers import GPTNeoConfig, GPTNeoForCausalLM

        gpt2 = model_of("gpt2")
        shape = GPTNeoConfig(
            vocab_size=len(gpt2.tokenizer), hidden_size=32, num_layers=2, num_heads=4, window_size=256,
            attention_types=[[["global", "local"], 1]], max_position_embeddings=2_048, bos_token_id=1, eos_token_id=2,
            initializer_range=0.3,
        )  # fmt: skip
        torch.manual_seed(0)
        for dtype in (torch.float32, torch.bfloat16):
            groups = replace(
                gpt2, name="neo", model=GPTNeoForCausalLM(shape).eval().to(dtype), dtype=str(dtype).split(".")[1]
            )
            warnings: list[str] = []
            scores = scored(groups, make_prompts(6), report=warnings.append)
            assert warnings == [
                "neo cannot compute several prompts in one row: options are computed separately, which is slower"
            ]
            if dtype == torch.float32:
                for prompt in make_prompts(6):
                    np.testing.assert_allclose(scores[prompt.prompt_id], plain(groups, prompt), atol=1e-4)


class TestTooLong:
    def test_worked_examples_are_left_out_first_and_counted(self, model_of: Callable[[str], LanguageModel]) -> None:
        model = replace(model_of("gpt2"), context=150)
        prompt = make_prompts(6, n_examples=5)[5]
        lengths = [len(model.tokenizer(prompt.text(n)).input_ids) for n in range(6)]
        options = [len(model.tokenizer(" " + option).input_ids) for option in prompt.options]
        expected = max(n for n in range(6) if lengths[n] + max(options) - 1 <= 150)
        assert 0 < expected < 5
        response = next(OptionScorer(model, method="loglikelihood").respond([prompt], lambda _: False))[0]
        assert response.n_examples == expected
        kept = replace(prompt, examples=prompt.examples[-expected:])
        assert response.logprobs == pytest.approx(plain(model, kept), abs=1e-4)

    def test_what_does_not_fit_without_them_is_an_error_or_cut_at_its_beginning(
        self, model_of: Callable[[str], LanguageModel]
    ) -> None:
        model = replace(model_of("gpt2"), context=20)
        prompt = replace(make_prompts(1, letters=True, n_examples=0)[0], question=f"{' '.join(WORDS[:60])}\nAnswer:")
        response = next(OptionScorer(model, method="letters").respond([prompt], lambda _: False))[0]
        over = len(model.tokenizer(prompt.text()).input_ids) - 20
        assert response.error == f"the prompt is {over:,} tokens longer than the context of gpt2 (20 tokens)"
        cut = OptionScorer(model, method="letters", too_long="cut")
        scores = next(cut.respond([prompt], lambda _: False))[0].logprobs
        with torch.inference_mode():
            ids = model.tokenizer(prompt.text()).input_ids[-20:]
            shares = model.model(torch.tensor([ids])).logits[0, -1].double().softmax(-1).numpy()
        assert scores == pytest.approx(sum_tokens(model, shares, prompt.options), abs=1e-4)


class TestStored:
    def test_a_pack_is_left_out_only_where_all_of_it_is_stored_and_bytes_do_not_depend_on_that(
        self, model_of: Callable[[str], LanguageModel]
    ) -> None:
        prompts = make_prompts()
        scorer = OptionScorer(model_of("llama"), method="loglikelihood", batch_size=4)
        whole = {r.prompt_id: r.logprobs.tobytes() for some in scorer.respond(prompts, lambda _: False) for r in some}
        for stored in ({1, 2, 3}, set(range(1, 15)), set(range(1, 19))):
            again = OptionScorer(model_of("llama"), method="loglikelihood", batch_size=4)
            rest = {r.prompt_id: r.logprobs.tobytes() for s in again.respond(prompts, stored.__contains__) for r in s}
            assert rest == {key: whole[key] for key in rest}
            assert set(rest) >= set(whole) - stored
        assert not rest


class TestLabels:
    def test_a_label_that_another_begins_with_is_reported(self, model_of: Callable[[str], LanguageModel]) -> None:
        """Where each digit is a token, 10 is never likelier than 1."""
        prompt = replace(make_prompts(1)[0], options=tuple(map(str, range(1, 11))))
        warnings: list[str] = []
        scores = scored(model_of("llama"), [prompt], method="letters", report=warnings.append)[prompt.prompt_id]
        assert scores[9] <= scores[0]
        assert len(warnings) == 1
        assert "in 1 prompts one label is a prefix of another: '10' begins with '1'" in warnings[0]
        warnings.clear()
        scored(
            model_of("llama"), [replace(prompt, options=prompt.options[:9])], method="letters", report=warnings.append
        )
        assert not warnings


class TestErrors:
    def test_labels_with_the_same_tokens_are_an_error(self, model_of: Callable[[str], LanguageModel]) -> None:
        prompt = replace(make_prompts(1, letters=True)[0], options=("Ж", "Щ", "Э"))
        model = model_of("t5")
        assert len(set(map(tuple, model.tokenizer([" Ж", " Щ"]).input_ids))) == 1
        with pytest.raises(SelectionError, match="encodes several of the labels 'Ж', 'Щ', 'Э' identically"):
            encode_prompts(model, [prompt], chat=False)
        with pytest.raises(SelectionError, match="--labels digits"):
            list(OptionScorer(model, method="letters").respond([prompt], lambda _: False))


class TestMemory:
    def test_too_much_at_once_is_halved_until_it_fits_and_nothing_is_lost(
        self, model_of: Callable[[str], LanguageModel], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prompts = make_prompts()
        whole = scored(model_of("llama"), prompts, batch_size=16)
        real = row_scorer.pack_row
        sizes: list[int] = []

        def small_machine(members: list[EncodedPrompt], n_prefix: int) -> Any:
            if len({member.prompt.prompt_id for member in members}) > 1:  # else rows are being tried
                sizes.append(len(members))
            if len(members) > 3:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return real(members, n_prefix)

        monkeypatch.setattr(row_scorer, "pack_row", small_machine)
        warnings: list[str] = []
        scorer = OptionScorer(model_of("llama"), method="loglikelihood", batch_size=16, report=warnings.append)
        scores = {r.prompt_id: r.logprobs for some in scorer.respond(prompts, lambda _: False) for r in some}
        assert max(sizes) > 6
        assert warnings[0] == f"out of memory; continuing with {(max(sizes) + 1) // 2} prompts per batch"
        for key, numbers in whole.items():
            assert scores[key] == pytest.approx(numbers, abs=1e-5)

    @pytest.mark.parametrize(("n", "fits"), [(1, 1), (7, 1), (9, 4), (16, 15)])
    def test_halving_keeps_every_item_once_and_in_order(self, n: int, fits: int) -> None:
        def work(items: list[int]) -> list[int]:
            if len(items) > fits:
                raise MemoryError
            return list(items)

        assert [item for part in process_in_halves(work, range(n)) for item in part] == list(range(n))

    def test_one_that_does_not_fit_and_other_errors_are_raised(self) -> None:
        def run_out_of_memory(items: list[int]) -> None:
            raise torch.OutOfMemoryError("out of memory") if len(items) < 3 else RuntimeError("something else")

        with pytest.raises(torch.OutOfMemoryError):
            list(process_in_halves(run_out_of_memory, [1]))
        with pytest.raises(RuntimeError, match="something else"):
            list(process_in_halves(run_out_of_memory, [1, 2, 3]))


def attention_table(row: PackedRow, n_prefix: int, window: float = np.inf) -> NDArray[np.bool_]:
    """Who reads whom, one pair at a time, ``(s, n_prefix + s)``."""
    owner, branch, positions = (
        [*before, *values]
        for before, values in (
            ([-1] * n_prefix, row.owner), ([-1] * n_prefix, row.branch), (range(n_prefix), row.positions),
        )
    )  # fmt: skip
    table = np.zeros((len(row.ids), len(owner)), dtype=bool)
    for reader in range(n_prefix, len(owner)):
        for read in range(reader + 1):
            shared_by_all = owner[read] == -1
            same_text = owner[read] == owner[reader] and branch[read] in (-1, branch[reader])
            near = positions[reader] - positions[read] < window
            table[reader - n_prefix, read] = (shared_by_all or same_text) and near
    return table


TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple)
ENCODED = st.tuples(
    st.lists(st.integers(0, 3), min_size=2, max_size=12).map(tuple), st.lists(TOKENS, min_size=1, max_size=4)
)


def as_encoded(number: int, ids: tuple[int, ...], options: list[tuple[int, ...]], head: str = "") -> EncodedPrompt:
    prompt = RenderedPrompt(prompt_id=number, header=head, question="", options=tuple("ABCD"[: len(options)]))
    return EncodedPrompt(prompt=prompt, context=Context(text="", ids=ids, n_examples=0), options=tuple(options))


class TestPacks:
    @settings(max_examples=50)
    @given(st.lists(ENCODED, min_size=1, max_size=4))
    def test_every_token_of_every_option_is_predicted_from_exactly_what_stands_before_it(self, parts: Any) -> None:
        """Followed through the table of who reads whom, each prediction rests on context and option so far."""
        members = [as_encoded(n, ids, options) for n, (ids, options) in enumerate(parts)]
        prefix = find_shared_prefix([member.context.ids for member in members]) if len(members) > 1 else ()
        row = pack_row(members, len(prefix))
        reads = attention_table(row, len(prefix))
        tokens = np.concatenate([np.array(prefix, dtype=np.int64), row.ids])
        places = np.concatenate([np.arange(len(prefix)), row.positions])
        predictors_by_key: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for predictor, target, option, shared in zip(row.predictors, row.targets, row.options, row.shared, strict=True):
            seen = np.flatnonzero(reads[predictor])
            order = np.argsort(places[seen])
            assert (np.diff(places[seen][order]) == 1).all()
            before = tuple(tokens[seen][order].tolist())
            owner = int(row.owner[predictor])
            first = sum(row.n_options[:owner])
            last = first + row.n_options[owner]
            for encoded_member in range(first, last) if shared else [option]:
                predictors_by_key.setdefault(int(encoded_member), []).append((before, int(target)))
        number = 0
        for encoded_member in members:
            for option in encoded_member.options:
                expected = [((*encoded_member.context.ids, *option[:k]), token) for k, token in enumerate(option)]
                assert sorted(predictors_by_key[number]) == sorted(expected)
                number += 1

    @settings(max_examples=50)
    @given(
        st.lists(st.tuples(ENCODED, st.sampled_from("ab")), min_size=1, max_size=12),
        st.one_of(st.none(), st.integers(1, 5)),
    )
    def test_every_question_is_in_one_pack_of_its_group(self, parts: Any, size: int | None) -> None:
        start = tuple(range(20))
        every = [as_encoded(n, start + ids, options, head) for n, ((ids, options), head) in enumerate(parts)]
        groups = group_by_prefix(every, batch_size=size, budget=40)
        assert sorted(at for group in groups for pack in group.packs for at in pack) == list(range(len(every)))
        for group in groups:
            assert all(every[at].context.ids[: len(group.prefix)] == group.prefix for p in group.packs for at in p)
            assert size is None or all(len(pack) == size for pack in group.packs[:-1])
            assert all(group.packs)

    def test_prompts_with_other_examples_share_the_tokens_with_which_they_begin(self) -> None:
        first, second = tuple(range(100, 200)), tuple(range(200, 300))
        every = [as_encoded(n, start + (n,) * 30, [(1,)], f"{n}") for n, start in enumerate([first, second] * 3)]
        groups = group_by_prefix(every, batch_size=None, budget=60)
        assert {group.prefix: sorted(at for pack in group.packs for at in pack) for group in groups} == {
            first: [0, 2, 4],
            second: [1, 3, 5],
        }
        assert [group.prefix for group in group_by_prefix(every, batch_size=None, budget=500)] == [()]

    @settings(max_examples=200)
    @given(st.lists(st.integers(0, 120), max_size=6), st.integers(0, 3))
    def test_of_nested_groups_those_are_chosen_that_save_most_tokens(self, common: list[int], least: int) -> None:
        def is_allowed(first: int, last: int, _: int) -> bool:
            return last - first >= least

        def saved(groups: Any) -> int:
            return sum((last - first - 1) * min(common[first : last - 1]) - PREFIX_COST for first, last in groups)

        n = len(common) + 1
        possible = [
            (first, last)
            for first in range(n)
            for last in range(first + 2, n + 1)
            if (prefix := min(common[first : last - 1])) >= WORTH_SHARING
            and is_allowed(first, last, prefix)
            and all(common[at] < prefix for at in (first - 1, last - 1) if 0 <= at < n - 1)  # holds all such texts
        ]
        best = [0] * (n + 1)  # by the end of the last group
        for end in range(1, n + 1):
            ending = [best[first] + saved([(first, last)]) for first, last in possible if last == end]
            best[end] = max([best[end - 1], *ending])
        groups = find_prefix_groups(common, is_allowed)
        assert set(groups) <= set(possible)
        assert all(last <= first for (_, last), (first, _) in pairwise(sorted(groups)))
        assert saved(groups) == best[n]
