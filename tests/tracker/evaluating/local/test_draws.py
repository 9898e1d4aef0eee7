"""Draws that depend on seed, text and trial alone, and are draws from the softmax."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

torch = pytest.importorskip("torch")

from tracker.evaluating.local.sampling import GumbelSampler, gumbel_noise, stream_key  # noqa: E402

N_TOKENS = 12
MASK = 2**64 - 1


def split_mix(state: int, n: int) -> list[int]:
    """SplitMix64 as its authors wrote it, number by number."""
    generated = []
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        generated.append(z ^ (z >> 31))
    return generated


def drawn(
    keys: list[int], logits: np.ndarray, step: int = 0, temperature: float = 1.0, top_p: float = 1.0
) -> np.ndarray:
    """The token of each row, all with the same logits."""
    scores = torch.from_numpy(logits).repeat(len(keys), 1)
    written = torch.zeros((len(keys), 5 + step), dtype=torch.int64)
    return GumbelSampler(keys, 5, temperature, top_p)(written, scores).argmax(dim=1).numpy()


def keys_of(n: int, seed: int = 0) -> list[int]:
    return [stream_key(seed, "a text", trial) for trial in range(n)]


class TestAgainstReference:
    @given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 5_000))
    @settings(max_examples=40)
    def test_the_noise_is_that_of_the_generator_written_out(self, key: int, step: int) -> None:
        start = split_mix((key + 0x9E3779B97F4A7C15 * step) & MASK, 1)[0]
        uniform = (np.array([bits >> 12 for bits in split_mix(start, N_TOKENS)], dtype=np.float64) + 0.5) / 2.0**52
        noise = gumbel_noise(torch.tensor([key]), step, N_TOKENS)[0].numpy()
        assert noise == pytest.approx(-np.log(-np.log(uniform)), abs=1e-9)

    def test_the_numbers_published_for_the_generator(self) -> None:
        assert split_mix(1234567, 2) == [6457827717110365317, 3203168211198807973]

    def test_the_noise_is_gumbel(self) -> None:
        noise = gumbel_noise(torch.tensor(keys_of(20)), 3, 1_000).numpy().ravel()
        assert stats.kstest(noise, "gumbel_r").pvalue > 0.01


class TestExactness:
    @pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.7), (2.0, 0.9)])
    def test_tokens_are_as_frequent_as_their_probabilities(self, temperature: float, top_p: float) -> None:
        logits = np.random.default_rng(0).normal(size=N_TOKENS)
        weights = np.exp(logits / temperature)
        probabilities = weights / weights.sum()
        order = np.argsort(-probabilities)
        n_kept = 1 + int(np.searchsorted(np.cumsum(probabilities[order]), top_p)) if top_p < 1 else N_TOKENS
        kept = np.zeros(N_TOKENS)
        kept[order[:n_kept]] = probabilities[order[:n_kept]]
        counts = np.bincount(drawn(keys_of(20_000), logits, 2, temperature, top_p), minlength=N_TOKENS)
        assert not counts[kept == 0].any()
        expected = 20_000 * kept[kept > 0] / kept.sum()
        assert stats.chisquare(counts[kept > 0], expected).pvalue > 0.01

    def test_steps_trials_and_neighbours_are_independent(self) -> None:
        first, second = (gumbel_noise(torch.tensor(keys_of(4_000)), step, 2).numpy() for step in (0, 1))
        columns = np.column_stack([first, second, first[:, 0][np.arange(4_000) - 1]])
        correlations = np.corrcoef(columns, rowvar=False)[np.triu_indices(5, 1)]
        assert np.abs(correlations).max() < 4 / np.sqrt(4_000)


class TestLaws:
    @given(st.permutations(range(6)), st.integers(1, 6), st.integers(0, 40))
    @settings(max_examples=40)
    def test_a_row_draws_the_same_in_any_batch(self, order: list[int], n: int, step: int) -> None:
        logits = np.linspace(-1, 1, 50)
        keys = keys_of(6)
        alone = [int(drawn([key], logits, step)[0]) for key in keys]
        chosen = order[:n]
        assert drawn([keys[row] for row in chosen], logits, step).tolist() == [alone[row] for row in chosen]

    def test_seed_text_and_trial_each_make_another_stream(self) -> None:
        keys = {stream_key(*name) for name in [(0, "a", 0), (1, "a", 11), (11, "a", 1), (0, "b", 0), (0, "a", 1)]}
        assert len(keys) == 5

    def test_each_step_of_a_row_draws_anew(self) -> None:
        logits = np.zeros(1_000)
        tokens = [int(drawn(keys_of(1), logits, step)[0]) for step in range(10)]
        assert len(set(tokens)) > 5

    def test_a_text_that_no_encoding_knows_has_a_stream(self) -> None:
        assert isinstance(stream_key(0, "\ud800", 0), int)

    @pytest.mark.parametrize("top_p", [0.0, 1e-9])
    def test_the_likeliest_token_always_stays(self, top_p: float) -> None:
        logits = np.array([0.0, 2.0, 1.0])
        assert set(drawn(keys_of(50), logits, top_p=top_p).tolist()) == {1}

    def test_a_token_that_is_ruled_out_is_never_drawn(self) -> None:
        logits = np.array([0.0, -np.inf, 0.0])
        assert set(drawn(keys_of(200), logits).tolist()) == {0, 2}
