"""Tokenize texts with the tokenizer of a local model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tracker.evaluating.local.loading import LanguageModel

TEXTS_AT_ONCE = 200
Ids = tuple[int, ...]


def tokenize(model: LanguageModel, texts: Sequence[str], *, chat: bool = False, bare: bool = False) -> list[Ids]:
    """Tokenize texts.

    End tokens that the tokenizer appends, such as ``</s>`` or ``[SEP]``, are removed for a model that continues the
    text. Start tokens stay.

    Args:
        model: its tokenizer is used.
        texts: any number of texts.
        chat: whether the texts went through the chat template, which adds special tokens itself.
        bare: whether to add no special tokens at all.
    """
    tokenizer: Any = model.tokenizer
    bos_token = tokenizer.bos_token
    is_complete = [chat or bare or bool(bos_token and text.startswith(bos_token)) for text in texts]
    n_ends = 0 if model.is_encoder_decoder or all(is_complete) else _count_end_tokens(tokenizer)
    ids_by_text: list[Ids] = [()] * len(texts)
    for complete in (False, True):
        places = [at for at, text_is_complete in enumerate(is_complete) if text_is_complete == complete]
        for first in range(0, len(places), TEXTS_AT_ONCE):
            part = places[first : first + TEXTS_AT_ONCE]
            encoded = _encode_batch(tokenizer, [texts[at] for at in part], add_special_tokens=not complete)
            for at, ids in zip(part, encoded, strict=True):
                ids_by_text[at] = tuple(ids if complete else ids[: len(ids) - n_ends])
    return ids_by_text


def _encode_batch(tokenizer: Any, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[int]]:
    """Return the tokens of texts as the tokenizer's class computes them.

    Where this class leaves the work to the tokenizers library, places of tokens in the text are not computed, which
    takes a third of the time. The first text still goes through the class, which configures the library.
    """
    from transformers import PreTrainedTokenizerFast

    encode = partial(
        tokenizer, add_special_tokens=add_special_tokens, padding=False, truncation=False, return_attention_mask=False,
        verbose=False,
    )  # fmt: skip
    methods = ("__call__", "_encode_plus", "_convert_encoding", "set_truncation_and_padding")
    if not isinstance(tokenizer, PreTrainedTokenizerFast) or any(
        name in vars(tokenizer) or getattr(type(tokenizer), name) is not getattr(PreTrainedTokenizerFast, name)
        for name in methods
    ):
        return list(encode(list(texts))["input_ids"])
    first = encode([texts[0]])["input_ids"]
    rest = tokenizer.backend_tokenizer.encode_batch_fast(list(texts[1:]), add_special_tokens=add_special_tokens)
    return [*first, *(encoding.ids for encoding in rest)]


def _count_end_tokens(tokenizer: Any) -> int:
    """Return the number of tokens that a tokenizer appends to every text."""
    with_marks, plain = (
        tokenizer("a", add_special_tokens=marks, verbose=False)["input_ids"] for marks in (True, False)
    )
    n_more = len(with_marks) - len(plain)
    first = next((at for at in range(n_more + 1) if with_marks[at : at + len(plain)] == plain), n_more)
    return n_more - first
