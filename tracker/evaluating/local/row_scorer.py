"""Compute packed rows of prompts after a common prefix, and test whether a model computes them correctly."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import is_out_of_memory, process_in_halves
from tracker.evaluating.local.packing import PackedRow, count_computed_tokens, pack_row
from tracker.evaluating.local.padded_rows import score_option_by_option
from tracker.evaluating.local.row_masks import RowLayout, find_window, use_layout
from tracker.evaluating.local.tokens import EncodedPrompt, Ids

TOLERANCE = {"float32": 1e-3, "float64": 1e-3, "bfloat16": 0.08, "float16": 0.02}
"""Tolerance of a token's log-probability, by dtype. The order of summation alone stays below it. Of 30 kinds of small
models with random weights, those that support packed rows deviated by at most 0.009 (bfloat16) and 0.001 (float16),
the others by at least 0.1.
"""
MAX_TEST_CONTEXT = 64
"""Maximum tokens of a context that are computed in the row for the test of packed rows."""
MAX_TEST_ROW = 4_096
"""Maximum tokens of the row on which a model is tested, unless rows are filled beyond."""
MAX_TEST_OPTIONS = 3
"""Maximum options of the prompt far beyond a window on which a model is tested."""
MaskRoute = Literal["builders", "argument"]
"""How a mask reaches the layers: the model builds one per kind of layer, or all layers receive the same one."""
MASK_ROUTES: tuple[MaskRoute, ...] = ("builders", "argument")
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
        self.keeps = "logits_to_keep" in inspect.signature(model.model.forward).parameters
        self.cache: Any = None
        if prefix:
            self.cache = self._compute_prefix(prefix)

    def _compute_prefix(self, prefix: Ids) -> Any:
        import torch
        from transformers import DynamicCache

        options: dict[str, Any] = {"logits_to_keep": 1} if self.keeps else {}
        if find_window(self.model.model.config) is not None:
            options["past_key_values"] = DynamicCache()  # keeps all tokens, also in layers with a window
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

        by_builders = self.route == "builders"
        mask = (
            torch.ones((1, len(layout.positions)), dtype=torch.long, device=ids.device)
            if by_builders
            else layout.causal_mask(self.model.model.dtype)
        )
        with use_layout(layout) if by_builders else nullcontext():
            out = self.model.model(
                input_ids=ids[None],
                position_ids=layout.positions[None, self.n_prefix :],
                attention_mask=mask,
                past_key_values=_copy_cache(self.cache),
                use_cache=self.cache is not None,
                **({"logits_to_keep": predictors} if self.keeps else {}),
            )
        if by_builders and not layout.n_masks:
            raise NotImplementedError(f"{self.model.architecture} does not build its masks by transformers")
        return out.logits[0] if self.keeps else out.logits[0, predictors]


@dataclass(frozen=True, kw_only=True, eq=False)
class RowTest:
    """A prompt whose copies in a row are compared with the prompt alone.

    Attributes:
        prompt: the prompt.
        n_prefix: number of tokens of its context that are computed before.
        n_copies: number of copies in the row.
    """

    prompt: EncodedPrompt
    n_prefix: int
    n_copies: int


def choose_route(model: LanguageModel, prompts: Sequence[EncodedPrompt], budget: int) -> MaskRoute | None:
    """Return how masks reach the layers of a model; None if it does not compute packed rows correctly.

    Args:
        model: the model.
        prompts: all prompts of the evaluation.
        budget: tokens computed together.
    """
    tests = list(_make_row_tests(prompts, find_window(model.model.config), budget))
    expected = [score_option_by_option(model, [test.prompt])[0] for test in tests]
    for route in MASK_ROUTES:
        if all(
            _measure_row_error(model, test, logprobs, route) <= 1
            for test, logprobs in zip(tests, expected, strict=True)
        ):
            return route
    return None


def _make_row_tests(prompts: Sequence[EncodedPrompt], window: int | None, budget: int) -> Iterator[RowTest]:
    """Yield the tests of packed rows.

    The first row is filled with copies of a short prompt, because models that count a window or positions along the
    row are wrong only far from its beginning. If a prompt exceeds the window, one far beyond it is tested too: after a
    prefix that exceeds the window as well, and without a prefix.
    """
    longest = max(prompt.length for prompt in prompts)
    short = min(prompts, key=lambda prompt: prompt.length).shorten(MAX_TEST_CONTEXT)
    n_prefix = len(short.context.ids) // 2
    n_tokens = min(budget + longest, max(budget, MAX_TEST_ROW))
    n_copies = max(2, n_tokens // count_computed_tokens(short, n_prefix))
    yield RowTest(prompt=short, n_prefix=n_prefix, n_copies=n_copies)
    if window is not None and longest >= window:
        far = min(prompts, key=lambda prompt: (prompt.length < min(2 * window, longest), prompt.length))
        far = replace(far, options=far.options[:MAX_TEST_OPTIONS])
        n_contexts = len(far.context.ids)
        yield RowTest(prompt=far, n_prefix=n_contexts - min(n_contexts // 2, MAX_TEST_CONTEXT), n_copies=4)
        yield RowTest(prompt=far, n_prefix=0, n_copies=2)


def _measure_row_error(model: LanguageModel, test: RowTest, expected: NDArray[np.float64], route: MaskRoute) -> float:
    """Return the error of a prompt in a packed row, relative to the tolerance; infinite if rows cannot be computed."""
    n_summed = np.sqrt([len(option) for option in test.prompt.options])  # rounding errors add up like a random walk
    errors = []
    try:
        rows = RowScorer(model, test.prompt.context.ids[: test.n_prefix], route)
        for row in process_in_halves(rows.submit, [test.prompt] * test.n_copies):
            errors += [float(np.sqrt((((n - expected) / n_summed) ** 2).mean())) for _, n in row.collect()]
    except (
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        KeyError,
        IndexError,
        NotImplementedError,
    ) as error:
        if is_out_of_memory(error):
            raise
        return np.inf
    return float(np.max(errors)) / TOLERANCE.get(model.dtype, TOLERANCE["bfloat16"])  # NaN remains NaN


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
