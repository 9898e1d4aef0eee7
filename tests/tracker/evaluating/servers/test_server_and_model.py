"""A model behind a server gives the probabilities that it gives in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from protocol_server import ProtocolServer, every

from tracker.evaluating.local.loading import LanguageModel, load_language_model
from tracker.evaluating.local.option_scorer import OptionScorer
from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt
from tracker.evaluating.responses import Response
from tracker.evaluating.servers.server_model import ServerModel

Open = Callable[..., ServerModel]


def nothing_stored(prompt_id: int) -> bool:
    return False


class ModelServer(ProtocolServer):
    """Serves a model of transformers, one text at a time, in the plainest way."""

    language_model: LanguageModel

    def _completed(self, text: str, body: dict[str, Any], n_top: int) -> dict[str, Any]:
        import torch

        tokenizer = self.language_model.tokenizer
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            logits = self.language_model.model(torch.tensor([ids])).logits[0].double()
        logprobs = torch.log_softmax(logits, dim=-1)
        spelt = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        choice: dict[str, Any] = {"text": "", "logprobs": None}
        if body.get("echo"):
            values = [None, *(float(logprobs[at, token]) for at, token in enumerate(ids[1:]))]
            choice["logprobs"] = {"tokens": [spelt[token] for token in ids], "token_logprobs": values}
        else:
            top = torch.topk(logprobs[-1], n_top)
            lp = {spelt[token]: value for token, value in zip(top.indices.tolist(), top.values.tolist(), strict=True)}
            choice["logprobs"] = {"top_logprobs": [lp]}
        return self._counted({"choices": [choice]}, text, "")


@pytest.fixture
def sent_prompts() -> list[RenderedPrompt]:
    examples = (FewShotExample(question="Which of these was why?\nAnswer:", answer="B"),)
    texts = ("the one", "what is π", "not in these", "how many")
    return [
        RenderedPrompt(
            prompt_id=n,
            examples=examples,
            question=f"Which one is {word}?\nAnswer:",
            options=tuple("ABCD") if n % 2 else texts,
        )
        for n, word in enumerate(("that", "this", "many", "why", "of", "the", "é", "not"))
    ]


def served(
    model: LanguageModel, sent_prompts: list[RenderedPrompt], opened: Open, method: str, **options: Any
) -> list[Response]:
    server = ModelServer(most_top=10**6)
    server.language_model = model
    with server:
        return every(opened(server, method, concurrency=2, **options).respond(sent_prompts, nothing_stored))


class TestAgainstModel:
    @pytest.mark.parametrize("family", ["gpt2", "llama"])
    def test_likelihoods_are_those_of_the_model(
        self, language_model_folders: dict[str, Path], sent_prompts: list[RenderedPrompt], family: str, opened: Open
    ) -> None:
        model = load_language_model(str(language_model_folders[family]), device="cpu")
        local_responses = every(OptionScorer(model, method="loglikelihood").respond(sent_prompts, nothing_stored))
        server_responses = {
            response.prompt_id: response for response in served(model, sent_prompts, opened, "loglikelihood")
        }
        assert sorted(server_responses) == [prompt.prompt_id for prompt in sent_prompts]
        for response in local_responses:
            np.testing.assert_allclose(server_responses[response.prompt_id].logprobs, response.logprobs, atol=1e-4)

    def test_letters_are_those_of_the_model_with_its_other_spellings(
        self, language_model_folders: dict[str, Path], sent_prompts: list[RenderedPrompt], opened: Open
    ) -> None:
        import torch

        model = load_language_model(str(language_model_folders["gpt2"]), device="cpu")
        vocabulary = {token.replace("Ġ", " "): n for token, n in model.tokenizer.get_vocab().items()}
        lettered = [prompt for prompt in sent_prompts if prompt.options[0] == "A"]
        server_responses = {
            response.prompt_id: response
            for response in served(model, lettered, opened, "letters", n_top=len(model.tokenizer))
        }
        for prompt in lettered:
            ids = model.tokenizer(prompt.text(), return_tensors="pt")["input_ids"]
            with torch.no_grad():
                logprobs = torch.log_softmax(model.model(ids).logits[0, -1].double(), dim=-1).numpy()
            spellings = [
                [vocabulary[spelling] for spelling in (label, f" {label}") if spelling in vocabulary]
                for label in "ABCD"
            ]
            expected = [np.logaddexp.reduce(logprobs[places]) for places in spellings]
            np.testing.assert_allclose(server_responses[prompt.prompt_id].logprobs, expected, atol=1e-9)
