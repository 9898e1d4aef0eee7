"""The engine of PyTorch: the code for a CUDA device runs here on a CPU, and on a device where there is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import binary_tables, binary_tables_with_gaps

torch = pytest.importorskip("torch", reason="the extra `gpu` is not installed")

from analyses.numerics.null_tables import shuffle_columns  # noqa: E402
from analyses.numerics.similarity.binary import compare_binary  # noqa: E402
from analyses.numerics.similarity.devices import device_counter, draws  # noqa: E402
from analyses.numerics.similarity.devices.device_counter import DeviceRows  # noqa: E402
from analyses.numerics.similarity.devices.device_engine import create_engine  # noqa: E402
from analyses.numerics.similarity.devices.draws import compute_words, draw_below, shuffle_on_device  # noqa: E402
from analyses.numerics.similarity.pairs.pair_counter import PairCounter  # noqa: E402
from analyses.numerics.similarity.score_table import ScoreTable  # noqa: E402
from analyses.numerics.similarity.similarities import SIMILARITIES, select_similarities  # noqa: E402
from tracker.statistics.rng_kernels import fill_below  # noqa: E402
from tracker.statistics.rng_streams import stream_key  # noqa: E402

CHOICES = [("hamming",), ("cosine",), ("jaccard",), ("cosine", "jaccard"), ("hamming", "cosine", "jaccard")]
TYPES = [torch.float16, torch.float32]
EDGES = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1], [1, 1, 0], [0, 0, 0.0]])
GAPS = np.array([[1, np.nan], [np.nan, 1], [0, 0], [np.nan, 0], [1, 1.0]])


def scattered(n: int, k: int, *, gaps: float = 0, seed: int = 0) -> np.ndarray:
    """Prompts of every difficulty, with rows of zeros and of ones; some cells are missing."""
    rng = np.random.default_rng(seed)
    table = (rng.random((n, k)) < rng.random((n, 1)) ** 2).astype(float)
    table[0], table[-1] = 0, 1
    table[rng.random((n, k)) < gaps] = np.nan
    table[np.isnan(table).all(axis=1), 0] = 1
    return table


def check_draws(table: np.ndarray, *, seed: int, device: str = "cpu") -> None:
    """Some drawn tables, in every bit."""
    packed, key = ScoreTable(table).packed, stream_key(seed)
    for permutation in (0, 5):
        expected = shuffle_columns(packed, key, permutation)
        actual = shuffle_on_device(packed, key, permutation, device=device)
        assert expected.dtype == actual.dtype
        assert expected.tolist() == actual.tolist()


def check_against_kernels(table: np.ndarray, choices: tuple[str, ...], *, tile: int, device: str = "cpu") -> None:
    """The counts of a table and of another one with its missing cells, and the sums of rows, in every byte."""
    scores = ScoreTable(table)
    similarities = tuple(s for s in select_similarities(choices) if table.shape[1] <= s.max_columns)
    kernels = PairCounter.create(scores, similarities)
    counter = replace(create_engine(device).create_counter(scores, similarities), tile=tile)
    for bits in (kernels.packed.bits, kernels.packed.masks & ~kernels.packed.bits):
        for expected, actual in zip(kernels.count(bits), counter.count(bits), strict=True):
            assert expected.dtype == actual.dtype
            assert expected.tolist() == actual.tolist()
    for expected, actual in zip(kernels.sum_each_row(), counter.sum_each_row(), strict=True):
        assert expected.dtype == actual.dtype
        assert expected.tobytes() == actual.tobytes()
    assert counter.n_pairs() == kernels.n_pairs()


class TestAgainstKernels:
    @pytest.mark.parametrize("dtype", TYPES)
    @settings(max_examples=60)
    @given(
        table=st.one_of(binary_tables(), binary_tables_with_gaps()),
        choices=st.sampled_from(CHOICES),
        tile=st.integers(1, 14),
    )
    @example(table=EDGES, choices=CHOICES[-1], tile=2)
    @example(table=EDGES, choices=CHOICES[1], tile=5)
    @example(table=np.zeros((4, 2)), choices=CHOICES[-1], tile=3)
    @example(table=np.ones((4, 2)), choices=CHOICES[-1], tile=4)
    @example(table=np.array([[1.0], [0.0], [1.0]]), choices=CHOICES[-1], tile=2)
    @example(table=GAPS, choices=CHOICES[-1], tile=2)
    def test_counts_and_sums_of_rows_are_those_of_the_kernels(self, dtype, table, choices, tile):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device_counter, "choose_dtype", lambda *_: dtype)
            check_against_kernels(table, choices, tile=tile)

    @pytest.mark.parametrize("gaps", [0, 0.03])
    @pytest.mark.parametrize(("n", "k"), [(64, 63), (65, 64), (63, 65), (40, 130), (50, 301)])
    @pytest.mark.parametrize("tile", [16, 17, 64])
    def test_tables_around_the_sizes_of_words_and_tiles(self, n, k, gaps, tile):
        check_against_kernels(scattered(n, k, gaps=gaps), CHOICES[-1], tile=tile)

    @pytest.mark.parametrize("null", ["columns", "margins"])
    @pytest.mark.parametrize("gaps", [0, 0.1])
    def test_tests_are_equal_in_every_byte(self, null, gaps):
        scores = ScoreTable(scattered(70, 9, gaps=gaps))
        expected = compare_binary(scores, n_permutations=60, null=null, seed=4)
        actual = compare_binary(scores, n_permutations=60, null=null, seed=4, engine=create_engine("cpu"))
        assert (expected.n_pairs, expected.n_disjoint) == (actual.n_pairs, actual.n_disjoint)
        for name, means in expected.mean_to_others.items():
            assert means.tobytes() == actual.mean_to_others[name].tobytes()
        for first, second in zip(expected.tests, actual.tests, strict=True):
            assert (first.observed == second.observed).all()
            assert (first.pooled == second.pooled).all()
            for name, comparison in first.comparisons.items():
                same = second.comparisons[name]
                assert comparison.null.tobytes() == same.null.tobytes()
                assert (comparison.observed, comparison.pvalue) == pytest.approx(
                    (same.observed, same.pvalue), abs=0, nan_ok=True
                )

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
    @pytest.mark.parametrize("gaps", [0, 0.01])
    @pytest.mark.parametrize("k", [1, 100, 300, 1000])
    def test_on_a_cuda_device(self, k, gaps):
        table = scattered(1500, k, gaps=gaps)
        check_against_kernels(table, CHOICES[-1], tile=512, device="cuda")
        check_draws(table, seed=2, device="cuda")


class TestDraws:
    @settings(max_examples=100)
    @given(table=st.one_of(binary_tables(), binary_tables_with_gaps()), seed=st.integers(0, 99))
    @example(table=EDGES, seed=0)
    @example(table=np.zeros((4, 2)), seed=0)
    @example(table=np.array([[1.0], [0.0], [1.0]]), seed=1)
    def test_tables_are_those_of_the_kernel(self, table, seed):
        check_draws(table, seed=seed)

    @pytest.mark.parametrize("gaps", [0, 0.03])
    @pytest.mark.parametrize(("n", "k"), [(300, 63), (300, 64), (300, 65), (999, 130)])
    def test_tables_around_the_sizes_of_words(self, n, k, gaps):
        check_draws(scattered(n, k, gaps=gaps), seed=3)

    @pytest.mark.parametrize("max_cells", [1, 300, 500])
    def test_tables_do_not_depend_on_how_many_columns_are_drawn_at_once(self, max_cells, monkeypatch):
        monkeypatch.setattr(draws, "MAX_CELLS", max_cells)
        check_draws(scattered(100, 11, gaps=0.05), seed=3)

    def test_larger_tables_are_those_of_the_kernel(self, monkeypatch):
        monkeypatch.setattr(draws, "MAX_ROWS", 20)
        check_draws(scattered(21, 4), seed=3)

    @pytest.mark.parametrize(("bound", "step"), [(3_000_000_000, 1), (2**32 - 300, 1), (1, 1), (300, -1), (7, 0)])
    def test_draws_with_rejected_words_are_those_of_the_kernel(self, bound, step):
        key, n, columns = stream_key(8), 200, [0, 1, 7]
        bounds = torch.tensor([[bound + i * step for i in range(n)]] * len(columns))
        n_spare = 400
        words = compute_words(key, 1, 6, torch.tensor(columns), n + n_spare)
        drawn = draw_below(words, bounds, torch.ones_like(bounds, dtype=torch.bool), n_spare)
        assert drawn is not None
        expected = np.empty(n, np.int64)
        for column, row in zip(columns, drawn.numpy(), strict=True):
            fill_below(expected, bound, np.int64(step), key, np.int64(1), 6, column)
            assert expected.tolist() == row.tolist()

    def test_too_few_words_are_reported(self):
        bounds = torch.full((1, 200), 3_000_000_000)
        words = compute_words(stream_key(8), 1, 6, torch.tensor([0]), 203)
        assert draw_below(words, bounds, torch.ones_like(bounds, dtype=torch.bool), 3) is None

    def test_more_words_are_computed_where_they_do_not_suffice(self, monkeypatch):
        spares = []

        def reject_twice(words, bounds, is_draw, n_spare):
            spares.append(n_spare)
            return None if len(spares) < 3 else draw_below(words, bounds, is_draw, n_spare)

        monkeypatch.setattr(draws, "SPARE", 0)
        monkeypatch.setattr(draws, "draw_below", reject_twice)
        packed, key = ScoreTable(scattered(30, 3)).packed, stream_key(1)
        assert (shuffle_on_device(packed, key, 0, device="cpu") == shuffle_columns(packed, key, 0)).all()
        assert spares == [0, 1, 3]


class TestExactness:
    @pytest.mark.parametrize("n_ones", [2047, device_counter.MAX_HALF_COLUMNS])
    def test_float16_holds_the_largest_numbers_of_common_ones(self, n_ones):
        scores = torch.zeros((2, device_counter.MAX_HALF_COLUMNS), dtype=torch.float16)
        scores[:, :n_ones] = 1
        ones = torch.full((2,), n_ones, dtype=torch.int32)
        assert DeviceRows(scores, ones).compare(slice(0, 2), slice(0, 2)).common.unique().tolist() == [n_ones]

    def test_float16_is_used_on_cuda_devices_as_far_as_it_is_exact(self):
        largest = device_counter.MAX_HALF_COLUMNS
        assert device_counter.choose_dtype("cuda:1", largest) == torch.float16
        assert device_counter.choose_dtype("cuda:1", largest + 1) == torch.float32
        assert device_counter.choose_dtype("cpu", 3) == torch.float32

    def test_the_most_models_have_the_counts_of_the_kernels(self):
        choices = ("hamming", "jaccard")
        check_against_kernels(scattered(12, 2000, seed=1), choices, tile=5)

    def test_the_limit_of_models_is_within_that_of_float16(self):
        assert max(s.max_columns for s in SIMILARITIES) <= device_counter.MAX_HALF_COLUMNS
