"""Batches are the same whatever is stored already, so that vectors are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from encoder_files import LIMIT
from hypothesis import given
from hypothesis import strategies as st

from tracker.evaluating.embeddings.batches import PORTION, embed_batches, find_missing_batches, make_batches
from tracker.evaluating.embeddings.encoders import TextEncoder, load_encoder

LENGTHS = st.lists(st.integers(2, 60), min_size=1, max_size=80)


class TestLaws:
    @given(LENGTHS, st.integers(1, 33), st.one_of(st.none(), st.integers(5, 40)), st.randoms())
    def test_every_text_is_in_one_batch_and_its_like_are_with_it(
        self, lengths: list[int], size: int, limit: int | None, shuffle: object
    ) -> None:
        read = np.array(lengths)
        keys = np.random.default_rng(len(lengths)).permutation(len(lengths)) + 10
        cut_batches = make_batches(keys, read, limit, size)
        rows = np.concatenate([batch.rows for batch in cut_batches])
        assert sorted(rows.tolist()) == list(range(len(lengths)))
        assert [len(batch.rows) for batch in cut_batches[:-1]] == [size] * (len(cut_batches) - 1)
        cut = np.minimum(read, limit or 1000)[rows]
        assert (np.diff(cut) <= 0).all()
        assert [batch.cost for batch in cut_batches] == [cut[i * size] * len(b.rows) for i, b in enumerate(cut_batches)]

    @given(LENGTHS, st.integers(1, 9), st.integers(0, 80))
    def test_a_batch_is_left_out_only_where_every_member_is_stored(
        self, lengths: list[int], size: int, n_stored: int
    ) -> None:
        keys = np.arange(len(lengths)) * 3
        every = make_batches(keys, np.array(lengths), None, size)
        stored = set(keys[:n_stored].tolist())
        left = find_missing_batches(every, keys, stored)
        assert [b for b in every if b in left] == left
        for batch in every:
            assert (batch in left) == (not set(keys[batch.rows].tolist()) <= stored)


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> TextEncoder:
    return load_encoder(str(tiny_encoder), device="cpu")


class TestVectors:
    def test_whatever_is_stored_already_the_others_have_the_same_bytes(self, encoder: TextEncoder) -> None:
        rng = np.random.default_rng(5)
        texts = ["".join(rng.choice(list("abc xyz"), size=n)) + "?" for n in rng.integers(1, 2 * LIMIT, size=400)]
        keys, lengths = np.arange(400) + 1, encoder.lengths(texts)
        every = make_batches(keys, lengths, encoder.limit, 16)

        def cut_batches(stored: set[int]) -> dict[int, bytes]:
            todo = find_missing_batches(every, keys, stored)
            portions = list(embed_batches(encoder, texts, keys, todo, stored))
            assert all(len(portion.prompt_ids) >= min(PORTION, 100) for portion in portions[:-1])
            assert sum(portion.cost for portion in portions) == sum(batch.cost for batch in todo)
            return {
                key: row.tobytes() for p in portions for key, row in zip(p.prompt_ids.tolist(), p.vectors, strict=True)
            }

        whole = cut_batches(set())
        assert sorted(whole) == keys.tolist()
        for stored in (set(range(1, 300)), set(rng.choice(keys, size=150, replace=False).tolist()), set(keys.tolist())):
            rest = cut_batches(stored)
            assert rest == {key: row for key, row in whole.items() if key not in stored}

    def test_vectors_without_a_direction_are_counted_and_left_out(self, encoder: TextEncoder) -> None:
        import torch

        weights = encoder.model[0].auto_model.embeddings.LayerNorm
        output = encoder.model[0].auto_model.encoder.layer[0].output.LayerNorm
        kept = [(part, part.weight.data.clone(), part.bias.data.clone()) for part in (weights, output)]
        try:
            output.weight.data, output.bias.data = torch.zeros(16), torch.zeros(16)
            keys = np.arange(4) + 1
            todo = make_batches(keys, encoder.lengths(["a", "b", "c", "d"]), encoder.limit, 3)
            portions = list(embed_batches(encoder, ["a", "b", "c", "d"], keys, todo, set()))
        finally:
            for part, weight, bias in kept:
                part.weight.data, part.bias.data = weight, bias
        assert [portion.n_useless for portion in portions] == [4]
        assert portions[0].vectors.shape == (0, 16)
