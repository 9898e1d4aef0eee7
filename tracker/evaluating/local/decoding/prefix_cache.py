"""Keys and values of a prefix that several prompts share: computed once, and copied into each row of a batch.

The rows stay padded on the left as if each were computed whole. A row that is shorter than the longest by ``k`` tokens
begins with ``k`` columns of padding, and the last ``k`` tokens of the prefix are computed again with the rest of its
prompt. Distances between tokens are therefore true ones, as attention windows and chunks need them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracker.evaluating.local.decoding.generate import generate, pad_rows
from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.tokenization import Ids


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixCache:
    """The keys and values of a prefix.

    Attributes:
        ids: its tokens.
        cache: transformers cache of one row; sliding-window layers keep all tokens.
    """

    ids: Ids
    cache: Any

    def expand(self, n_padding: Sequence[int]) -> Any:
        """Return a cache of rows whose first columns are padding, with as many columns as the prefix has tokens.

        Args:
            n_padding: columns of padding of each row; at least one row has none.
        """
        import torch

        expanded = copy.copy(self.cache)
        shifts = torch.tensor(n_padding)
        expanded.layers = [_expand_layer(layer, shifts, len(self.ids)) for layer in self.cache.layers]
        return expanded


def compute_prefix(model: LanguageModel, ids: Ids, filler: int) -> PrefixCache | None:
    """Return the keys and values of a prefix; None if the model has another kind of cache.

    Raises:
        ValueError: the model does not accept a cache.
    """
    from transformers import DynamicCache

    cache = DynamicCache(config=model.model.config)
    if model.is_encoder_decoder or not has_attention_layers(cache):
        return None
    cache.activate_past_recording()
    tokens, mask = pad_rows(model, [ids], filler)
    out = generate(model, filler=filler, max_new_tokens=1, input_ids=tokens, attention_mask=mask, past_key_values=cache)
    return PrefixCache(ids=ids, cache=out.past_key_values) if has_attention_layers(out.past_key_values) else None


def has_attention_layers(cache: Any) -> bool:
    """Return whether a cache has only keys and values by token, of full or sliding-window attention."""
    from transformers.cache_utils import DummyLayer, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    if type(cache) is not DynamicCache:
        return False
    return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer, DummyLayer) for layer in cache.layers)


def _expand_layer(layer: Any, shifts: Any, n_columns: int) -> Any:
    import torch

    expanded = copy.copy(layer)
    if getattr(layer, "keys", None) is None:
        return expanded
    first = 0
    if layer.is_sliding:
        expanded.record_past, expanded.cumulative_length = False, n_columns
        first = max(0, n_columns - layer.sliding_window + 1)
    places = (torch.arange(first, n_columns)[None, :] - shifts[:, None]).clamp_(min=0).to(layer.keys.device)
    expanded.keys, expanded.values = (
        states[0][:, places].transpose(0, 1) if shifts.any() else states[:, :, first:].expand(len(shifts), -1, -1, -1)
        for states in (layer.keys, layer.values)
    )
    return expanded
