"""Attention masks of packed rows, built on the device from a few vectors.

A token of a row attends to the prefix, to the tokens of its prompt before it, and to those of its option before it.
Within these, a window or a chunk counts the positions in the text, not the places in the row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

MaskFunction = Callable[[Any, Any, Any, Any], Any]
"""Whether a query attends to a key, from the indices of batch, head, query and key; as in transformers."""
IMPLEMENTATIONS = ("sdpa", "eager", "flex_attention")
"""Implementations of attention whose masks are replaced."""
ALIGNMENT = 16
"""Rows of a mask begin at multiples of this number of elements, as fast attention kernels require."""
CPU_QUERIES = 128
"""Maximum tokens of a row whose attention is computed together on a CPU; fewer skip more keys."""
MAX_MASKS = 4
"""Masks whose parts are kept: more than a model has kinds of layers."""
WINDOWS = ("sliding_window", "attention_chunk_size", "window_size", "attention_window_size")
"""Names in model configurations of the attention window of sliding-window layers."""


class QueryBlock(NamedTuple):
    """Neighbouring tokens of a row, which only attend to the prefix and to a part of the row.

    Attributes:
        first: index of the block's first token, without the prefix.
        last: index after its last token.
        start: index of the first token that one of them attends to.
    """

    first: int
    last: int
    start: int


@dataclass(kw_only=True, eq=False)
class RowLayout:
    """Where the tokens of a row stand, on the device of the model.

    Attributes:
        owner: ``(n_prefix + s,)`` index of the prompt; -1 for the prefix.
        branch: ``(n_prefix + s,)`` index of the option; -1 for tokens that all options share.
        positions: ``(n_prefix + s,)`` position of each token in its text.
        n_prefix: number of tokens of the prefix.
        n_masks: number of masks that the model has built from the layout.
        mask_parts: parts of a mask by block, with the mask, by its identity.
    """

    owner: Any
    branch: Any
    positions: Any
    n_prefix: int
    n_masks: int = field(default=0)
    mask_parts: dict[int, tuple[Any, list[Any]]] = field(default_factory=dict)

    @property
    def n_tokens(self) -> int:
        """Return the tokens of the row, without the prefix."""
        return len(self.positions) - self.n_prefix

    @cached_property
    def blocks(self) -> list[QueryBlock]:
        """Return the row as blocks of at most `CPU_QUERIES` tokens: several whole prompts, or a part of one."""
        owner = self.owner[self.n_prefix :].cpu().numpy()
        ends = [*(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(owner)]
        blocks: list[QueryBlock] = []
        for start, end in pairwise([0, *ends]):
            if blocks and end - blocks[-1].start <= CPU_QUERIES:
                blocks[-1] = blocks[-1]._replace(last=end)
                continue
            for first in range(start, end, CPU_QUERIES):
                blocks.append(QueryBlock(first=first, last=min(first + CPU_QUERIES, end), start=start))
        return blocks

    def cut_mask(self, mask: Any) -> list[Any]:
        """Return the parts of a mask ``(batch, heads, s, n_prefix + s)`` by block; cached, since layers share masks."""
        if id(mask) not in self.mask_parts:
            if len(self.mask_parts) == MAX_MASKS:  # some models make a mask for every layer
                self.mask_parts.clear()
            parts = [self.cut_keys(mask[:, :, block.first : block.last], block, axis=3) for block in self.blocks]
            self.mask_parts[id(mask)] = mask, parts
        return self.mask_parts[id(mask)][1]

    def cut_keys(self, tensor: Any, block: QueryBlock, axis: int = 2) -> Any:
        """Return the part of a tensor for the keys that a block attends to."""
        import torch

        if not block.start:
            return tensor.narrow(axis, 0, self.n_prefix + block.last)
        of_prompts = tensor.narrow(axis, self.n_prefix + block.start, block.last - block.start)
        return torch.cat([tensor.narrow(axis, 0, self.n_prefix), of_prompts], dim=axis) if self.n_prefix else of_prompts

    def restrict(self, mask_function: MaskFunction) -> MaskFunction:
        """Return the mask function of a text as one of the row.

        Args:
            mask_function: counts queries and keys by their position in one text.
        """
        owner, branch, positions = self.owner, self.branch, self.positions

        def attends(batch: Any, head: Any, query: Any, key: Any) -> Any:
            same_option = (branch[key] < 0) | (branch[key] == branch[query])
            same_text = (owner[key] < 0) | ((owner[key] == owner[query]) & same_option)
            return same_text & mask_function(batch, head, positions[query], positions[key])

        return attends

    def causal_mask(self, dtype: Any) -> Any:
        """Return the mask of layers without a window as numbers to add, ``(1, 1, s, n_prefix + s)``."""
        import torch

        keys = torch.arange(len(self.positions), device=self.positions.device)
        attends = self.restrict(lambda _batch, _head, query, key: key <= query)
        return convert_mask(attends(None, None, keys[self.n_prefix :, None], keys[None, :])[None, None], dtype)


def convert_mask(allowed: Any, dtype: Any) -> Any:
    """Return a mask of truth values as numbers to add; every layer would otherwise convert it again."""
    import torch

    *sizes, n_keys = allowed.shape
    padded = -(-n_keys // ALIGNMENT) * ALIGNMENT
    mask = torch.zeros((*sizes, padded), dtype=dtype, device=allowed.device)[..., :n_keys]
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min)


@contextmanager
def use_layout(layout: RowLayout) -> Iterator[None]:
    """Let models build the masks of all layers for a row, while the context lasts.

    Models of transformers build the mask of each kind of layer from a function of query and key. Here this function
    receives positions in the text. Threads that compute something else are not affected.
    """
    token = _LAYOUT.set(layout)
    _replace_builders(+1)
    try:
        yield
    finally:
        _replace_builders(-1)
        _LAYOUT.reset(token)


@contextmanager
def use_attention(config: Any, implementation: str | None) -> Iterator[None]:
    """Let the layers of a model use an implementation of attention, while the context lasts; None for its usual one."""
    usual = config._attn_implementation
    if implementation is not None:
        config._attn_implementation = implementation
    try:
        yield
    finally:
        config._attn_implementation = usual


def find_window(config: Any) -> int | None:
    """Return the shortest attention window of a model's layers in tokens; None if all attend to all tokens.

    A window that the configuration does not state counts as 0, so that every prompt exceeds it.
    """
    text = config.get_text_config()
    sizes = (getattr(text, name, None) for name in WINDOWS)
    unknown = 0 if {*(getattr(text, "layer_types", None) or ())} - {"full_attention"} else None
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=unknown)


def find_rope_limit(config: Any) -> int | None:
    """Return the length from which a text's length decides how all its positions are encoded; None without one."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    limits = []
    for part in (rope, *rope.values()) if isinstance(rope, Mapping) else ():  # some models have one per kind of layer
        if isinstance(part, Mapping) and part.get("rope_type", part.get("type")) in ("longrope", "dynamic"):
            usual = getattr(text, "original_max_position_embeddings", None) or text.max_position_embeddings
            limits.append(int(part.get("original_max_position_embeddings") or usual))
    return min(limits, default=None)


_LAYOUT: ContextVar[RowLayout | None] = ContextVar("layout", default=None)
_LOCK = threading.Lock()
_n_active = 0
_originals: list[tuple[Any, str, Callable[..., Any]]] = []


def _replace_builders(change: int) -> None:
    """Replace transformers' builders of masks, and its usual attention, when the first row begins; restore them after
    the last.
    """
    global _n_active
    from transformers import masking_utils, modeling_utils

    builders, attention = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS, modeling_utils.ALL_ATTENTION_FUNCTIONS
    with _LOCK:
        if _n_active == 0:
            _originals.extend((builders, name, builders[name]) for name in IMPLEMENTATIONS if name in builders)
            for _, name, original in _originals:
                builders[name] = partial(_build_mask, original)
            _originals.append((attention, "sdpa", attention["sdpa"]))
            attention["sdpa"] = partial(_attend, attention["sdpa"])
        _n_active += change
        if _n_active == 0:
            for registry, name, original in _originals:
                registry[name] = original
            _originals.clear()


def _attend(
    original: Callable[..., Any], module: Any, query: Any, key: Any, value: Any, mask: Any, *rest: Any, **arguments: Any
) -> Any:
    """Compute attention in a row on a CPU by blocks of queries; each block only reads the prefix and its prompts."""
    layout = _LAYOUT.get()
    sizes = None if layout is None else (layout.n_tokens, len(layout.positions))
    is_plain = getattr(mask, "ndim", 0) == 4 and mask.shape[2:] == sizes and arguments.get("position_bias") is None
    if layout is None or query.device.type != "cpu" or (query.shape[2], key.shape[2]) != sizes or not is_plain:
        return original(module, query, key, value, mask, *rest, **arguments)
    import torch

    parts = [
        original(
            module,
            query[:, :, block.first : block.last],
            layout.cut_keys(key, block),
            layout.cut_keys(value, block),
            part,
            *rest,
            **arguments,
        )[0]
        for block, part in zip(layout.blocks, layout.cut_mask(mask), strict=True)
    ]
    return torch.cat(parts, dim=1), None


def _build_mask(original: Callable[..., Any], *, mask_function: MaskFunction, **arguments: Any) -> Any:
    layout = _LAYOUT.get()
    if layout is None:
        return original(mask_function=mask_function, **arguments)
    import torch

    arguments |= {"attention_mask": None, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    sizes = (layout.n_tokens, len(layout.positions), layout.n_prefix, 0)
    if tuple(arguments.get(name, 0) for name in ("q_length", "kv_length", "q_offset", "kv_offset")) != sizes:
        raise ValueError("a layer of the model does not keep all tokens of the prefix")
    layout.n_masks += 1
    mask = original(mask_function=layout.restrict(mask_function), **arguments)
    if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
        return convert_mask(mask, arguments.get("dtype") or torch.get_default_dtype())
    return mask
