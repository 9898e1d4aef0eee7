"""Compute each option in a separate, right-padded row: slower, and correct for every model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.tokenization import Ids
from tracker.evaluating.local.tokens import EncodedPrompt


def score_option_by_option(
    model: LanguageModel,
    members: Sequence[EncodedPrompt],
    *,
    one_row_each: bool = False,
    score_tokens: Callable[[Any, Ids], float] | None = None,
) -> list[NDArray[np.float64]]:
    """Return the log-probabilities of the options of each prompt, ``(n_options,)`` each.

    Options that differ only in their last token share a row.

    Args:
        model: scores the options.
        members: the prompts.
        one_row_each: whether each row is computed by itself, because the length of the longest row changes others.
        score_tokens: function of the logits that predict an option, ``(n_tokens, n_vocabulary)``, and its tokens; by
            default the log-probability.
    """
    score_tokens = score_tokens or _sum_logprobs
    if one_row_each:
        return [
            np.array([_score_alone(model, member, option, score_tokens) for option in member.options])
            for member in members
        ]
    rows: dict[tuple[int, Ids], int] = {}
    for number, prompt in enumerate(members):
        for option in prompt.options:
            rows.setdefault((number, option[:-1]), len(rows))
    score = (
        _make_encoder_decoder_scorer(model, members, list(rows), score_tokens)
        if model.is_encoder_decoder
        else _make_causal_scorer(model, members, list(rows), score_tokens)
    )
    return [
        np.array([score(rows[number, option[:-1]], option) for option in prompt.options])
        for number, prompt in enumerate(members)
    ]


def is_greedy(logits: Any, option: Ids) -> float:
    """Return 1 if greedy decoding generates an option, else 0.

    Args:
        logits: ``(n_tokens, n_vocabulary)`` that predict it.
        option: its tokens.
    """
    return float(logits.argmax(dim=-1).tolist() == list(option))


def _score_alone(
    model: LanguageModel, member: EncodedPrompt, option: Ids, score_tokens: Callable[[Any, Ids], float]
) -> float:
    """Return the log-probability of an option, computed as by a model that was just loaded."""
    import torch

    with torch.inference_mode():  # a short text makes dynamic encodings forget the longest text so far
        model.model(input_ids=torch.tensor([member.context.ids[:1]], device=model.device), use_cache=False)
    return float(_make_causal_scorer(model, [member], [(0, option[:-1])], score_tokens)(0, option))


def _make_causal_scorer(
    model: LanguageModel,
    members: Sequence[EncodedPrompt],
    rows: Sequence[tuple[int, Ids]],
    score_tokens: Callable[[Any, Ids], float],
) -> Any:
    import torch

    texts = [(*members[number].context.ids, *start) for number, start in rows]
    ids, mask = _pad(model, texts)
    first_row = min(len(members[number].context.ids) for number, _ in rows) - 1
    keeps = "logits_to_keep" in inspect.signature(model.model.forward).parameters
    last_logits = {"logits_to_keep": ids.shape[1] - first_row} if keeps else {}
    with torch.inference_mode():
        logits = model.model(input_ids=ids, attention_mask=mask, use_cache=False, **last_logits).logits
    n_skipped = ids.shape[1] - logits.shape[1]

    def score(row: int, option: Ids) -> float:
        first = len(texts[row]) - len(option) - n_skipped
        return score_tokens(logits[row, first : first + len(option)], option)

    return score


def _make_encoder_decoder_scorer(
    model: LanguageModel,
    members: Sequence[EncodedPrompt],
    rows: Sequence[tuple[int, Ids]],
    score_tokens: Callable[[Any, Ids], float],
) -> Any:
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    ids, mask = _pad(model, [member.context.ids for member in members])
    start = model.model.config.decoder_start_token_id
    written, written_mask = _pad(model, [(start, *before) for _, before in rows])
    owner = torch.tensor([number for number, _ in rows], device=model.device)
    with torch.inference_mode():
        read = model.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        logits = model.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=read[owner]),
            attention_mask=mask[owner],
            decoder_input_ids=written,
            decoder_attention_mask=written_mask,
            use_cache=False,
        ).logits
    return lambda row, option: score_tokens(logits[row, : len(option)], option)


def _sum_logprobs(logits: Any, option: Ids) -> float:
    import torch

    scores = logits.float()
    targets = torch.tensor(option, device=scores.device)[:, None]
    return float((scores.gather(1, targets)[:, 0] - scores.logsumexp(dim=-1)).double().sum())


def _pad(model: LanguageModel, texts: Sequence[Ids]) -> tuple[Any, Any]:
    import torch

    longest = max(map(len, texts))
    ids = torch.zeros((len(texts), longest), dtype=torch.long)
    mask = torch.zeros((len(texts), longest), dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = 1
    return ids.to(model.device), mask.to(model.device)
