"""Prompts with options, and their log-probabilities by a plain loop over options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from language_model_files import corpus
from numpy.typing import NDArray

from tracker.evaluating.prompt_templates.rendered_prompt import FewShotExample, RenderedPrompt

if TYPE_CHECKING:
    from tracker.evaluating.local.loading import LanguageModel

WORDS = " ".join(corpus(60, seed=3)).split()


def make_prompts(n: int = 18, letters: bool = False, n_examples: int = 3) -> list[RenderedPrompt]:
    """Questions of all lengths with 3 to 5 options; two thirds of them share their worked examples."""
    rng = np.random.default_rng(n)

    def text(low: int, high: int) -> str:
        return " ".join(rng.choice(WORDS, rng.integers(low, high)))

    examples = tuple(
        FewShotExample(question=f"Question: {text(4, 20)}\nAnswer:", answer=text(1, 4)) for _ in range(n_examples)
    )
    return [
        RenderedPrompt(
            prompt_id=at + 1,
            header="Here they are.\n\n",
            examples=examples if at % 3 else examples[: at % 2],
            question=f"Question: {text(2, 30)}\nAnswer:",
            options=tuple("ABCDE"[: 3 + at % 3]) if letters else tuple(text(1, 7) for _ in range(3 + at % 3)),
            correct_option=0,
        )
        for at in range(n)
    ]


def plain_labels(model: LanguageModel, prompt: RenderedPrompt) -> NDArray[np.float64]:
    """Labels after a prompt: the slow, obvious sum over all tokens that are the label but for white space."""
    import torch

    with torch.inference_mode():
        if model.is_encoder_decoder:
            read = model.tokenizer(prompt.text(), return_tensors="pt").input_ids
            start = torch.tensor([[model.model.config.decoder_start_token_id]])
            logits = model.model(input_ids=read, decoder_input_ids=start).logits[0, -1]
        else:
            logits = model.model(model.tokenizer(prompt.text(), return_tensors="pt").input_ids).logits[0, -1]
    return sum_tokens(model, logits.double().softmax(-1).numpy(), prompt.options)


def sum_tokens(model: LanguageModel, shares: NDArray[np.float64], labels: tuple[str, ...]) -> NDArray[np.float64]:
    """Logarithms of the probabilities of labels, from those of all next tokens."""
    tokens = model.tokenizer.convert_ids_to_tokens(range(len(model.tokenizer)))
    texts = [token.replace("▁", " ").replace("Ġ", " ").replace("Ċ", "\n").strip() for token in tokens]
    return np.log([sum(shares[at] for at, text in enumerate(texts) if text == label) for label in labels])


def plain(model: LanguageModel, prompt: RenderedPrompt) -> NDArray[np.float64]:
    """Each option in a pass of its own, nothing shared, nothing padded."""
    import torch

    scores = []
    for option in prompt.options:
        with torch.inference_mode():
            if model.is_encoder_decoder:
                read = model.tokenizer(prompt.text(), return_tensors="pt").input_ids
                follows = model.tokenizer(prompt.join + option, add_special_tokens=False).input_ids
                logits = model.model(input_ids=read, labels=torch.tensor([follows])).logits[0]
            else:
                before = model.tokenizer(prompt.text()).input_ids
                whole = model.tokenizer(prompt.text() + prompt.join + option).input_ids
                follows = whole[len(before) :]
                logits = model.model(torch.tensor([whole])).logits[0, len(before) - 1 : -1]
        scores.append(float(logits.log_softmax(-1)[range(len(follows)), follows].sum()))
    return np.array(scores)
