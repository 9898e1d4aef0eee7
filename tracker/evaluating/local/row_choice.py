"""Choose how rows are computed: whether a model computes them correctly, how masks reach it, and how long rows are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tracker.evaluating.local.loading import LanguageModel
from tracker.evaluating.local.memory import count_free_bytes, is_out_of_memory, process_in_halves
from tracker.evaluating.local.packing import WORTH_SHARING, count_computed_tokens, group_by_prefix
from tracker.evaluating.local.padded_rows import score_option_by_option
from tracker.evaluating.local.row_masks import find_window
from tracker.evaluating.local.row_scorer import MaskRoute, RowScorer
from tracker.evaluating.local.self_check import UNSUPPORTED, find_tolerance
from tracker.evaluating.local.tokens import EncodedPrompt

CPU_TOKENS = 512
"""Tokens of a row on a CPU."""
ACCELERATOR_TOKENS = (2_048, 4_096, 8_192, 16_384)
"""Tokens of a row on an accelerator, as memory allows."""
MEMORY_SHARE = 0.5
"""Share of the free memory that a row may need by the estimate."""
DENSE_TOKENS_PER_UNIT = 2
"""Tokens of a row with a dense mask per hidden unit. Attention between all tokens of a row then takes a third of the
operations of the weights, by arithmetic.
"""
MIN_FLEX_TOKENS = 4_000_000
"""Minimum tokens of an evaluation to try FlexAttention, which is compiled first."""
MAX_TEST_CONTEXT = 64
"""Maximum tokens of a context that are computed in the row for the test of packed rows."""
MAX_TEST_ROW = 4_096
"""Maximum tokens of the row on which a model is tested, unless rows are filled beyond."""
MAX_TEST_OPTIONS = 3
"""Maximum options of the prompt far beyond a window on which a model is tested."""
ROUTES: tuple[MaskRoute, ...] = ("builders", "argument")
"""Routes of masks in the order of preference; FlexAttention is tried later."""


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


def find_route(
    model: LanguageModel, prompts: Sequence[EncodedPrompt], size: int, *, routes: Sequence[MaskRoute] = ROUTES
) -> MaskRoute | None:
    """Return the first route of masks by which a model computes packed rows correctly; None if none does.

    Args:
        model: the model.
        prompts: all prompts of the evaluation.
        size: tokens of a row.
        routes: routes to try.
    """
    tests = list(_make_row_tests(prompts, find_window(model.model.config), size))
    expected = [score_option_by_option(model, [test.prompt])[0] for test in tests]
    for route in routes:
        if all(
            _measure_row_error(model, test, logprobs, route) <= 1
            for test, logprobs in zip(tests, expected, strict=True)
        ):
            return route
    return None


def _make_row_tests(prompts: Sequence[EncodedPrompt], window: int | None, size: int) -> Iterator[RowTest]:
    """Yield the tests of packed rows.

    The first row is filled with copies of a short prompt, because models that count a window or positions along the
    row are wrong only far from its beginning. If a prompt exceeds the window, one far beyond it is tested too: after a
    prefix that exceeds the window as well, and without a prefix.
    """
    longest = max(prompt.length for prompt in prompts)
    # of a context of few tokens, no part is long enough to be cached as prefixes are
    shortest = min(prompts, key=lambda prompt: (len(prompt.context.ids) <= WORTH_SHARING, prompt.length))
    short = shortest.shorten(MAX_TEST_CONTEXT)
    n_prefix = len(short.context.ids) // 2
    n_tokens = min(size + longest, max(size, MAX_TEST_ROW))
    n_copies = max(2, n_tokens // count_computed_tokens(short, n_prefix))
    yield RowTest(prompt=short, n_prefix=n_prefix, n_copies=n_copies)
    if window is not None and longest >= window:
        enough = min(2 * window, longest) if window else longest
        far = min(prompts, key=lambda prompt: (prompt.length < enough, prompt.length))
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
    except UNSUPPORTED as error:
        if is_out_of_memory(error):
            raise
        return np.inf
    return float(np.max(errors)) / find_tolerance(model.dtype)  # NaN remains NaN


def choose_row_size(model: LanguageModel, longest: int, *, is_dense: bool) -> int:
    """Return the number of tokens of a row: on CUDA by free memory, elsewhere a constant.

    Args:
        model: the model.
        longest: tokens of the longest prompt; a prefix has fewer.
        is_dense: whether masks are dense, so that time grows with the square of the row.
    """
    if model.device == "cpu":
        return CPU_TOKENS
    free = count_free_bytes(model.device)
    if free is None:
        return ACCELERATOR_TOKENS[0]
    limit = DENSE_TOKENS_PER_UNIT * model.model.config.get_text_config().hidden_size if is_dense else np.inf
    sizes = [
        size
        for size in ACCELERATOR_TOKENS
        if size <= limit and estimate_row_bytes(model, size, longest, is_dense=is_dense) <= MEMORY_SHARE * free
    ]
    return max(sizes, default=ACCELERATOR_TOKENS[0])


def estimate_row_bytes(model: LanguageModel, n_tokens: int, n_prefix: int, *, is_dense: bool) -> int:
    """Return an upper estimate of the memory that a row needs, in bytes.

    Args:
        model: the model.
        n_tokens: tokens of the row; each may predict a token of an option.
        n_prefix: tokens of the prefix, whose keys and values every layer joins with those of the row.
        is_dense: whether masks are dense.
    """
    text = model.model.config.get_text_config()
    n_bytes = model.model.dtype.itemsize
    n_heads = text.num_attention_heads
    head_size = getattr(text, "head_dim", None) or text.hidden_size // n_heads
    n_cached = (getattr(text, "num_key_value_heads", None) or n_heads) * head_size
    inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    n_keys = n_prefix + n_tokens
    n_masks = 1 if find_window(model.model.config) is None else 2
    masks = n_tokens * n_keys * (n_masks * n_bytes + 4) if is_dense else 0  # 4: truth values while they are combined
    if is_dense and model.model.config._attn_implementation == "eager":  # all weights of a layer, several times
        masks += n_heads * n_tokens * n_keys * (3 * n_bytes + 4)
    cache = 2 * text.num_hidden_layers * n_keys * n_cached * n_bytes
    activations = n_tokens * (6 * text.hidden_size + 3 * (inner if isinstance(inner, int) else max(inner))) * n_bytes
    logits = n_tokens * text.vocab_size * (n_bytes + 8)  # as computed, as float32, and while they are normalized
    return int(masks + cache + activations + logits)


def prefers_flex(model: LanguageModel, prompts: Sequence[EncodedPrompt], dense_size: int, flex_size: int) -> bool:
    """Return whether FlexAttention computes rows correctly and faster than dense masks; always False on a CPU.

    Args:
        model: computes rows correctly by the route ``builders``.
        prompts: all prompts of the evaluation.
        dense_size: tokens of a row with dense masks.
        flex_size: tokens of a row with FlexAttention.
    """
    from transformers.utils import is_torch_flex_attn_available

    if not model.device.startswith("cuda") or not is_torch_flex_attn_available():
        return False
    if not getattr(model.model, "_supports_flex_attn", False):
        return False
    groups = group_by_prefix(prompts, batch_size=None, budget=flex_size)
    n_tokens = sum(
        count_computed_tokens(prompts[at], len(group.prefix)) for group in groups for pack in group.packs for at in pack
    )
    if n_tokens < MIN_FLEX_TOKENS:
        return False
    if find_route(model, prompts, flex_size, routes=("flex",)) is None:
        return False
    return _time_token(model, prompts, flex_size, "flex") < _time_token(model, prompts, dense_size, "builders")


def _time_token(model: LanguageModel, prompts: Sequence[EncodedPrompt], size: int, route: MaskRoute) -> float:
    """Return the seconds per token of a row; infinite if it cannot be computed."""
    group = group_by_prefix(prompts, batch_size=None, budget=size)[0]
    members = [prompts[at] for at in group.packs[0]]
    try:
        rows = RowScorer(model, group.prefix, route)
        seconds = []
        for _ in range(3):  # the first may compile
            start = time.perf_counter()
            rows.submit(members).collect()
            seconds.append(time.perf_counter() - start)
    except (RuntimeError, ValueError, TypeError):
        return np.inf
    return min(seconds) / sum(count_computed_tokens(member, len(group.prefix)) for member in members)
