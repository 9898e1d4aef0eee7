"""Answers that small models write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from language_model_files import corpus
from scipy import stats

torch = pytest.importorskip("torch")

from tracker.errors import SelectionError  # noqa: E402
from tracker.evaluating.local.decoding.decoder import Decoder  # noqa: E402
from tracker.evaluating.local.generation import TextGenerator  # noqa: E402
from tracker.evaluating.local.loading import LanguageModel  # noqa: E402
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt  # noqa: E402
from tracker.evaluating.responses import Response, Sampling  # noqa: E402

FAMILIES = ("gpt2", "llama", "t5")
LINES = [line[: 20 + 17 * at] for at, line in enumerate(corpus(6, seed=5))]
QUESTIONS = [RenderedPrompt(prompt_id=10 + at, question=line, references=("x",)) for at, line in enumerate(LINES)]


@pytest.fixture(scope="module")
def model_of(model_of: Callable[[str], LanguageModel]) -> Callable[[str], LanguageModel]:
    """The small models; with the head that it was given t5 says nothing but the token that fills rows up."""
    head = model_of("t5").model.lm_head
    fresh = torch.randn(head.weight.shape, generator=torch.Generator().manual_seed(0))
    head.weight = torch.nn.Parameter(fresh, requires_grad=False)
    return model_of


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest, model_of: Callable[[str], LanguageModel]) -> LanguageModel:
    return model_of(request.param)


@pytest.fixture
def gpt2(model_of: Callable[[str], LanguageModel]) -> LanguageModel:
    return model_of("gpt2")


def written(model: LanguageModel, sampling: Sampling, prompts: Any = QUESTIONS, **more: Any) -> dict[Any, Response]:
    stored = more.pop("stored", lambda _: False)
    portions = list(TextGenerator(model, sampling, **more).respond(prompts, stored))
    responses_by_key = [
        ((generated.prompt_id, generated.trial), generated) for portion in portions for generated in portion
    ]
    assert len(dict(responses_by_key)) == len(responses_by_key), "a reply was given twice"
    return dict(responses_by_key)


def texts(responses: dict[Any, Response]) -> dict[Any, str | None]:
    return {key: response.text for key, response in sorted(responses.items())}


def greedily(model: LanguageModel, text: str, n_tokens: int, ends: frozenset[int] = frozenset({2})) -> list[int]:
    """The slow, obvious version: one text, one token at a time, everything computed again each time."""
    read = torch.tensor([model.tokenizer(text)["input_ids"]])
    tokens: list[int] = []
    with torch.no_grad():
        while len(tokens) < n_tokens and not (tokens and tokens[-1] in ends):
            if model.is_encoder_decoder:
                logits = model.model(input_ids=read, decoder_input_ids=torch.tensor([[3, *tokens]])).logits
            else:
                logits = model.model(
                    input_ids=torch.cat([read, torch.tensor([tokens], dtype=torch.int64)], dim=1)
                ).logits
            tokens.append(int(logits[0, -1].argmax()))
    return tokens


class TestAgainstReference:
    def test_greedy_answers_are_those_of_one_token_after_the_other(self, model: LanguageModel) -> None:
        responses_by_key = written(model, Sampling(max_tokens=7), batch_size=4)
        for prompt in QUESTIONS:
            ids = greedily(model, prompt.text(), 7)
            response = responses_by_key[prompt.prompt_id, 0]
            assert response.text == model.tokenizer.decode(ids, skip_special_tokens=True)
            assert response.text
            assert response.n_tokens_written == len(ids)
            assert response.n_tokens_read == len(model.tokenizer(prompt.text())["input_ids"])

    def test_first_tokens_are_as_frequent_as_the_softmax(self, gpt2: LanguageModel) -> None:
        prompt = QUESTIONS[0]
        sampling = Sampling(max_tokens=1, temperature=0.7, n_trials=1_000)
        responses_by_key = written(gpt2, sampling, [prompt], batch_size=250)
        with torch.no_grad():
            read = torch.tensor([gpt2.tokenizer(prompt.text())["input_ids"]])
            probabilities = (gpt2.model(input_ids=read).logits[0, -1].double() / 0.7).softmax(0).numpy()
        shares: dict[str, float] = {}
        for token, share in enumerate(probabilities):  # tokens that show alike count together
            text = "" if token == 2 else gpt2.tokenizer.decode([token], skip_special_tokens=True)
            shares[text] = shares.get(text, 0.0) + float(share)
        names = sorted(shares, key=lambda text: (-shares[text], text))
        group = {text: at % 20 for at, text in enumerate(names)}
        expected, observed = np.zeros(20), np.zeros(20)
        for text, share in shares.items():
            expected[group[text]] += share * 1_000
        for response in responses_by_key.values():
            observed[group[response.text or ""]] += 1
        assert stats.chisquare(observed, expected).pvalue > 0.01


class TestLaws:
    @pytest.mark.parametrize("temperature", [0.0, 1.0])
    def test_any_batch_size_gives_the_same_texts(self, model: LanguageModel, temperature: float) -> None:
        sampling = Sampling(max_tokens=6, temperature=temperature, top_p=0.95, seed=3)
        alone = written(model, sampling, batch_size=1)
        together = written(model, sampling, batch_size=4)
        assert texts(together) == texts(alone)
        assert {key: generated.n_tokens_written for key, generated in together.items()} == {
            key: generated.n_tokens_written for key, generated in alone.items()
        }

    def test_other_prompts_change_no_draw(self, gpt2: LanguageModel) -> None:
        sampling = Sampling(max_tokens=5, temperature=1.5, seed=1)
        every = written(gpt2, sampling)
        some = written(gpt2, sampling, QUESTIONS[3:])
        assert texts(some) == {key: generated for key, generated in texts(every).items() if key in some}

    def test_seeds_and_trials_differ_and_repeat(self, gpt2: LanguageModel) -> None:
        first = texts(written(gpt2, Sampling(max_tokens=5, temperature=1.0, n_trials=3)))
        assert first == texts(written(gpt2, Sampling(max_tokens=5, temperature=1.0, n_trials=3), batch_size=2))
        assert len(set(first.values())) == len(first)
        assert set(first.values()).isdisjoint(
            texts(written(gpt2, Sampling(max_tokens=5, temperature=1.0, seed=1))).values()
        )

    def test_prompts_of_equal_text_draw_the_same(self, gpt2: LanguageModel) -> None:
        twins = [RenderedPrompt(prompt_id=key, question="Which of these?") for key in (1, 2)]
        responses_by_key = written(gpt2, Sampling(max_tokens=5, temperature=1.0), twins)
        assert responses_by_key[1, 0].text == responses_by_key[2, 0].text

    def test_batches_whose_prompts_are_stored_are_left_out_and_others_computed_whole(self, gpt2: LanguageModel) -> None:
        every = list(TextGenerator(gpt2, Sampling(max_tokens=2), batch_size=2).respond(QUESTIONS, lambda _: False))
        stored = {generated.prompt_id for generated in every[0]} | {every[1][0].prompt_id}
        rest = list(TextGenerator(gpt2, Sampling(max_tokens=2), batch_size=2).respond(QUESTIONS, stored.__contains__))
        assert [[generated.prompt_id for generated in part] for part in rest] == [
            [generated.prompt_id for generated in part] for part in every[1:]
        ]
        assert [[generated.text for generated in part] for part in rest] == [
            [generated.text for generated in part] for part in every[1:]
        ]

    def test_prompts_of_like_length_are_together_the_longest_first(self, gpt2: LanguageModel) -> None:
        portions = list(TextGenerator(gpt2, Sampling(max_tokens=1), batch_size=2).respond(QUESTIONS, lambda _: False))
        lengths = [generated.n_tokens_read for part in portions for generated in part]
        assert lengths == sorted(lengths, reverse=True)
        assert len(set(lengths)) == len(QUESTIONS)
        assert [len(part) for part in portions] == [2, 2, 2]

    def test_all_trials_of_a_prompt_come_together_even_more_than_go_together(self, gpt2: LanguageModel) -> None:
        sampling = Sampling(max_tokens=2, temperature=1.0, n_trials=5)
        portions = list(TextGenerator(gpt2, sampling, batch_size=3).respond(QUESTIONS, lambda _: False))
        assert [[generated.trial for generated in part] for part in portions] == [[0, 1, 2, 3, 4]] * len(QUESTIONS)
        assert all(len({generated.prompt_id for generated in part}) == 1 for part in portions)


class TestEnds:
    def test_an_answer_ends_before_a_stop_string(self, model: LanguageModel) -> None:
        sampling = Sampling(max_tokens=8, temperature=1.0, seed=2)
        free = written(model, sampling)
        assert all(response.is_truncated == (response.n_tokens_written == 8) for response in free.values())
        stops = {key: str(response.text)[5:8] for key, response in free.items() if str(response.text)[5:8].strip()}
        assert stops
        for key, stop in stops.items():
            text = str(free[key].text)
            prompt = next(generated for generated in QUESTIONS if generated.prompt_id == key[0])
            response = written(model, replace(sampling, stop=("never said", stop)), [prompt])[key]
            assert response.text == text[: text.index(stop)]
            assert (response.finish_reason, response.is_truncated) == ("stop", False)
            assert response.n_tokens_written <= free[key].n_tokens_written

    def test_a_row_that_has_ended_waits_for_the_others(self, gpt2: LanguageModel) -> None:
        sampling = Sampling(max_tokens=8, temperature=1.0, seed=2)
        free = texts(written(gpt2, sampling))
        stop = (str(free[10, 0])[3:6],)
        responses_by_key = written(gpt2, Sampling(max_tokens=8, temperature=1.0, seed=2, stop=stop), batch_size=6)
        cut = {key: str(text).split(stop[0])[0] for key, text in free.items()}
        assert texts(responses_by_key) == cut
        assert responses_by_key[10, 0].n_tokens_written < max(
            generated.n_tokens_written for generated in responses_by_key.values()
        )

    def test_a_token_that_ends_texts_ends_the_answer_and_is_not_shown(self, model: LanguageModel) -> None:
        text = QUESTIONS[0].text()
        free = greedily(model, text, 8)
        last = next((token for token in free if token != free[0]), free[0])
        original = model.model.generation_config.eos_token_id
        try:
            model.model.generation_config.eos_token_id = [2, last]
            response = written(model, Sampling(max_tokens=8), QUESTIONS[:1])[10, 0]
        finally:
            model.model.generation_config.eos_token_id = original
        before = free[: free.index(last)]
        assert response.text == model.tokenizer.decode(before, skip_special_tokens=True)
        assert model.tokenizer.decode(free, skip_special_tokens=True) != response.text
        assert response.n_tokens_written == len(before) + 1

    def test_a_special_token_as_a_stop_string_ends_the_answer(self, gpt2: LanguageModel) -> None:
        assert 2 in Decoder(gpt2, Sampling(stop=("</s>",))).ends
        assert 3 not in Decoder(gpt2, Sampling()).ends

    def test_an_answer_has_at_most_so_many_tokens(self, model: LanguageModel) -> None:
        for n in (1, 3):
            assert {generated.n_tokens_written for generated in written(model, Sampling(max_tokens=n)).values()} <= set(
                range(1, n + 1)
            )

    def test_what_the_model_wishes_of_its_sampling_does_not_count_and_is_left_alone(self, gpt2: LanguageModel) -> None:
        plain = texts(written(gpt2, Sampling(max_tokens=6)))
        original = gpt2.model.generation_config
        kept = original.to_dict()
        try:
            original.update(repetition_penalty=5.0, do_sample=True, temperature=9.0, num_beams=3, max_length=3)
            assert texts(written(gpt2, Sampling(max_tokens=6))) == plain
            assert gpt2.model.generation_config is original
            assert original.repetition_penalty == 5.0
        finally:
            original.update(**kept)


class TestContext:
    def test_worked_examples_that_do_not_fit_are_left_out(self, gpt2: LanguageModel) -> None:
        examples = tuple(FewShotExample(question=LINES[5] + f" {n}", answer="A") for n in range(12))
        prompt = RenderedPrompt(prompt_id=1, question=LINES[2], examples=examples)
        response = written(gpt2, Sampling(max_tokens=5), [prompt])[1, 0]
        assert 0 < response.n_examples < 12
        assert response.n_tokens_read == len(gpt2.tokenizer(prompt.text(response.n_examples))["input_ids"]) <= 512 - 4
        assert len(gpt2.tokenizer(prompt.text(response.n_examples + 1))["input_ids"]) > 512 - 4

    def test_a_prompt_that_leaves_no_room_is_an_error_and_others_go_on(self, gpt2: LanguageModel) -> None:
        long = RenderedPrompt(prompt_id=1, question="word " * 600)
        responses_by_key = written(gpt2, Sampling(max_tokens=3, n_trials=2, temperature=1.0), [long, QUESTIONS[0]])
        assert {responses_by_key[1, trial].text for trial in (0, 1)} == {None}
        error = responses_by_key[1, 0].error
        assert "longer than the context of gpt2 (512 tokens, with 3 reserved for the response)" in error
        assert responses_by_key[10, 1].text is not None
        assert not written(gpt2, Sampling(max_tokens=3), [long], stored={1}.__contains__)

    def test_a_prompt_that_leaves_no_room_can_be_cut_at_its_beginning(self, gpt2: LanguageModel) -> None:
        long = RenderedPrompt(prompt_id=1, question="word " * 600 + LINES[1])
        response = written(gpt2, Sampling(max_tokens=3), [long], too_long="cut")[1, 0]
        assert response.n_tokens_read == 510
        assert response.text

    def test_where_there_is_nothing_to_read_the_beginning_of_texts_is_read(self, model: LanguageModel) -> None:
        response = written(model, Sampling(max_tokens=2), [RenderedPrompt(prompt_id=1, question="")])[1, 0]
        assert response.n_tokens_read == 1
        assert response.n_tokens_written >= 1

    def test_more_than_a_model_can_write_is_refused(self, gpt2: LanguageModel) -> None:
        with pytest.raises(SelectionError, match="at most 512 tokens"):
            TextGenerator(gpt2, Sampling(max_tokens=513))

    def test_arguments_of_its_chat_template_change_the_text(self, gpt2: LanguageModel) -> None:
        template = gpt2.tokenizer.chat_template
        gpt2.tokenizer.chat_template = (
            template + "{% if not enable_thinking | default(true) %}<think></think>{% endif %}"
        )
        try:
            plain, without = (
                TextGenerator(model, Sampling(max_tokens=1), chat=True).encode_contexts(QUESTIONS[:1])[0].text
                for model in (gpt2, replace(gpt2, chat_arguments={"enable_thinking": False}))
            )
        finally:
            gpt2.tokenizer.chat_template = template
        assert without == f"{plain}<think></think>"

    @pytest.mark.parametrize(
        ("template", "message"),
        [
            ("{{ raise_exception('System role not supported') }}", "rejects a conversation of user: System role not"),
            ("{% for turn in messages %}{{ turn.text.plain }}{% endfor %}", "rejects a conversation of user: 'dict"),
            ("{% for turn in messages %}", "rejects a conversation of user: Unexpected end of template"),
            (None, "has no chat template: leave out --chat"),
        ],
    )
    def test_a_chat_template_that_fails_is_an_error_with_the_fix(
        self, gpt2: LanguageModel, monkeypatch: pytest.MonkeyPatch, template: str | None, message: str
    ) -> None:
        monkeypatch.setattr(gpt2.tokenizer, "chat_template", template)
        with pytest.raises(SelectionError, match=message):
            TextGenerator(gpt2, Sampling(max_tokens=1), chat=True).encode_contexts(QUESTIONS[:1])

    def test_a_conversation_follows_its_chat_template(self, gpt2: LanguageModel) -> None:
        prompt = RenderedPrompt(
            prompt_id=1, header="Be brief. ", question="Which?", examples=(FewShotExample(question="1+1?", answer="2"),)
        )
        response = written(gpt2, Sampling(max_tokens=4), [prompt], chat=True)[1, 0]
        conversation = "<|user|>\nBe brief. 1+1?</s>\n<|assistant|>\n2</s>\n<|user|>\nWhich?</s>\n<|assistant|>\n"
        assert response.text == gpt2.tokenizer.decode(greedily(gpt2, conversation, 4), skip_special_tokens=True)


class TestMemory:
    def test_memory_that_is_too_small_halves_the_batch_and_goes_on(
        self, gpt2: LanguageModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original, conversation, sizes = gpt2.model.generate, [], []

        def small(**options: Any) -> Any:
            sizes.append(len(options["input_ids"]))
            if len(options["input_ids"]) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return original(**options)

        expected = texts(written(gpt2, Sampling(max_tokens=3)))
        monkeypatch.setattr(gpt2.model, "generate", small)
        assert texts(written(gpt2, Sampling(max_tokens=3), batch_size=6, report=conversation.append)) == expected
        assert max(sizes) == 6
        assert conversation[0] == "out of memory; continuing with 3 responses per batch"
