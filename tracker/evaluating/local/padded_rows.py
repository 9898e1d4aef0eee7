"""Options each in a row of its own, padded behind: slower, and right for every model."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.tokens import Encoded, Ids


def option_by_option(model: LanguageModel, members: Sequence[Encoded]) -> list[NDArray[np.float64]]:
    """Log-probabilities of the options of each question, ``(n_options,)`` each.

    Options that differ only in their last token share a row.

    Args:
        model: who reads.
        members: the questions.
    """
    rows: dict[tuple[int, Ids], int] = {}
    for number, one in enumerate(members):
        for option in one.options:
            rows.setdefault((number, option[:-1]), len(rows))
    said = (
        _encoder_decoder(model, members, list(rows))
        if model.is_encoder_decoder
        else _causal(model, members, list(rows))
    )
    made = []
    for number, one in enumerate(members):
        made.append(np.array([said(rows[number, option[:-1]], option) for option in one.options]))
    return made


def _causal(model: LanguageModel, members: Sequence[Encoded], rows: Sequence[tuple[int, Ids]]) -> Any:
    import torch

    texts = [(*members[number].context.ids, *start) for number, start in rows]
    ids, mask = _padded(model, texts)
    first_wanted = min(len(members[number].context.ids) for number, _ in rows) - 1
    keeps = "logits_to_keep" in inspect.signature(model.model.forward).parameters
    last_ones = {"logits_to_keep": ids.shape[1] - first_wanted} if keeps else {}
    with torch.inference_mode():
        logits = model.model(input_ids=ids, attention_mask=mask, use_cache=False, **last_ones).logits
    n_left_out = ids.shape[1] - logits.shape[1]

    def said(row: int, option: Ids) -> float:
        first = len(texts[row]) - len(option) - n_left_out
        return _summed(logits[row, first : first + len(option)], option)

    return said


def _encoder_decoder(model: LanguageModel, members: Sequence[Encoded], rows: Sequence[tuple[int, Ids]]) -> Any:
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    ids, mask = _padded(model, [member.context.ids for member in members])
    start = model.model.config.decoder_start_token_id
    written, written_mask = _padded(model, [(start, *before) for _, before in rows])
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
    return lambda row, option: _summed(logits[row, : len(option)], option)


def _summed(logits: Any, option: Ids) -> float:
    import torch

    scores = logits.float()
    targets = torch.tensor(option, device=scores.device)[:, None]
    return float((scores.gather(1, targets)[:, 0] - scores.logsumexp(dim=-1)).double().sum())


def _padded(model: LanguageModel, texts: Sequence[Ids]) -> tuple[Any, Any]:
    import torch

    longest = max(map(len, texts))
    ids = torch.zeros((len(texts), longest), dtype=torch.long)
    mask = torch.zeros((len(texts), longest), dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text)
        mask[row, : len(text)] = 1
    return ids.to(model.device), mask.to(model.device)
