"""Compute packed rows of prompts after a common prefix."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.packing import PackedRow, pack_row
from tracker.evaluating.local.row_masks import RowLayout, find_window, use_attention, use_layout
from tracker.evaluating.local.tokenization import Ids
from tracker.evaluating.local.tokens import EncodedPrompt

MaskRoute = Literal["builders", "argument", "flex"]
"""How a mask reaches the layers: the model builds one per kind of layer; or all layers receive the same one; or the
model builds those of FlexAttention, which skips pairs of blocks that do not attend to each other.
"""
Scored = list[tuple[EncodedPrompt, NDArray[np.float64]]]


@dataclass(frozen=True, kw_only=True, eq=False)
class RowInFlight:
    """A row that the device may still be computing.

    Attributes:
        members: prompts of the row.
        row: how they are packed.
        logprobs: ``(t,)`` log-probabilities of the targets, on the device.
    """

    members: Sequence[EncodedPrompt]
    row: PackedRow
    logprobs: Any

    def collect(self) -> Scored:
        """Wait for the device; return the log-probabilities of the options of each prompt, ``(n_options,)`` each."""
        return list(zip(self.members, self.row.sum_by_option(self.logprobs.cpu().numpy()), strict=True))


class RowScorer:
    """Computes packed rows of prompts after a prefix that is computed once.

    Args:
        model: computes the rows.
        prefix: tokens of the prefix; may be empty.
        route: how masks reach the layers.
    """

    def __init__(self, model: LanguageModel, prefix: Ids, route: MaskRoute) -> None:
        self.model, self.n_prefix, self.route = model, len(prefix), route
        parameters = inspect.signature(model.model.forward).parameters
        self.keeps = "logits_to_keep" in parameters
        self.cache_argument = "cache" if "cache" in parameters else "past_key_values"  # of earlier transformers
        # tensors of places cannot select logits on another device
        devices = set((getattr(model.model, "hf_device_map", None) or {}).values())
        self.keeps_places = self.keeps and len(devices) <= 1
        self.cache: Any = None
        if prefix:
            self.cache = self._compute_prefix(prefix)

    def _compute_prefix(self, prefix: Ids) -> Any:
        import torch
        from transformers import DynamicCache

        options: dict[str, Any] = {"logits_to_keep": 1} if self.keeps else {}
        if find_window(self.model.model.config) is not None:
            options[self.cache_argument] = DynamicCache()  # keeps all tokens, also in layers with a window
        with torch.inference_mode():
            ids = torch.tensor([prefix], device=self.model.device)
            return self.model.model(input_ids=ids, use_cache=True, **options).past_key_values

    def submit(self, members: Sequence[EncodedPrompt]) -> RowInFlight:
        """Begin to compute some prompts in one row; does not wait for an accelerator."""
        import torch

        row = pack_row(members, self.n_prefix)
        places, at = np.unique(row.predictors, return_inverse=True)
        before, nobody = np.arange(self.n_prefix), np.full(self.n_prefix, -1)
        ids, positions, owner, branch, predictors, at, targets = _send(
            self.model.device,
            row.ids,
            np.concatenate([before, row.positions]),
            np.concatenate([nobody, row.owner]),
            np.concatenate([nobody, row.branch]),
            places,
            at,
            row.targets,
        )
        layout = RowLayout(owner=owner, branch=branch, positions=positions, n_prefix=self.n_prefix)
        with torch.inference_mode():
            logits = self._compute_logits(ids, layout, predictors).float()
            logprobs = (logits[at, targets] - logits.logsumexp(dim=-1)[at]).double()
        return RowInFlight(members=members, row=row, logprobs=logprobs)

    def _compute_logits(self, ids: Any, layout: RowLayout, predictors: Any) -> Any:
        import torch

        by_builders = self.route != "argument"
        attention = "flex_attention" if self.route == "flex" else None
        mask = (
            torch.ones((1, len(layout.positions)), dtype=torch.long, device=ids.device)
            if by_builders
            else layout.causal_mask(self.model.model.dtype)
        )
        with use_layout(layout) if by_builders else nullcontext(), use_attention(self.model.model.config, attention):
            out = self.model.model(
                input_ids=ids[None],
                position_ids=layout.positions[None, self.n_prefix :],
                attention_mask=mask,
                use_cache=self.cache is not None,
                **{self.cache_argument: _copy_cache(self.cache)},
                **({"logits_to_keep": predictors} if self.keeps_places else {}),
            )
        if by_builders and not layout.n_masks:
            raise NotImplementedError(f"{self.model.architecture} does not build its masks by transformers")
        return (
            out.logits[0]
            if self.keeps_places
            else out.logits[0, predictors.to(out.logits.device)].to(predictors.device)
        )


def _send(device: str, *arrays: NDArray[np.int64]) -> list[Any]:
    """Copy arrays to a device together, without waiting for it."""
    import torch

    together = torch.from_numpy(np.concatenate(arrays))
    if device.startswith("cuda"):
        together = together.pin_memory()  # else the copy would wait for the row that is being computed
    return list(together.to(device, non_blocking=True).split([len(array) for array in arrays]))


def _copy_cache(cache: Any) -> Any:
    """Return a copy of the prefix's keys and values; appending to the copy does not change the original."""
    if cache is None:
        return None
    copied = copy.copy(cache)
    copied.layers = [copy.copy(layer) for layer in cache.layers]
    return copied
