"""The result files: read by the formats that users' files are read by, stored as simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from tracker.database import transaction
from tracker.ingest.files.vector_file import read_vectors
from tracker.ingest.parsing.detection import parse_file
from tracker.ingest.write.vectors import EncoderName, ingest_vectors
from tracker.ingest.write.writer import store_file
from tracker.queries.embeddings import load_embeddings
from tracker.queries.performance import load_performance_matrix
from tracker.queries.resolution import find_benchmark
from tracker.queries.selection import Selection
from tracker.simulation.files import BENCHMARK, FILES, RESULT_FILES, VECTORS_FILE, write_files
from tracker.simulation.item_response import Design, Simulation, format_letters, simulate
from tracker.simulation.truth_comparison import compare_with_truth, read_stored_keys, select_scores


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return simulate(seed=3)


@pytest.fixture
def filled(store: sa.Engine, simulation: Simulation, tmp_path: Path) -> sa.Engine:
    write_files(simulation, tmp_path)
    for file in RESULT_FILES:
        reading = parse_file(tmp_path / file.name, file.options)
        with transaction(store, exclusive=True) as session:
            store_file(session, reading, file.options)
    with transaction(store, exclusive=True) as session:
        encoder = EncoderName(name=VECTORS_FILE.encoder, revision="", template="question+choices")
        vectors = read_vectors(tmp_path / VECTORS_FILE.name)
        ingest_vectors(session, vectors, find_benchmark(session, BENCHMARK).id, BENCHMARK, encoder)
    return store


class TestStored:
    def test_the_store_holds_exactly_what_was_simulated(self, filled: sa.Engine, simulation: Simulation) -> None:
        for condition, responses in (("full", simulation.full), ("answer_only", simulation.answer_only)):
            for metric, expected in (
                ("accuracy", responses.right.astype(float)),
                ("gold_probability_letters", responses.gold_probability),
            ):
                with transaction(filled, write=False) as session:
                    matrix = load_performance_matrix(
                        session, Selection(benchmark=BENCHMARK, metric=metric, condition=condition)
                    )
                    keys = read_stored_keys(session)
                row = {keys[prompt]: i for i, prompt in enumerate(matrix.prompt_ids.tolist())}
                column = [matrix.models.index(model) for model in simulation.models]
                rows = [row[key] for key in simulation.keys]
                assert matrix.Q.shape == expected.shape
                assert np.array_equal(matrix.Q[np.ix_(rows, column)], expected)
                assert np.array_equal(matrix.tasks[rows], simulation.tasks)

    def test_texts_options_and_answers_are_stored_with_the_prompts(
        self, filled: sa.Engine, simulation: Simulation
    ) -> None:
        with filled.connect() as connection:
            prompts = connection.execute(
                sa.text("SELECT a.key, p.text, p.answer FROM prompt p JOIN prompt_alias a ON a.prompt_id = p.id")
            ).all()
            answers = connection.execute(
                sa.text(
                    "SELECT m.name, r.condition, p.key, a.text FROM answer a JOIN run r ON r.id = a.run_id "
                    "JOIN model m ON m.id = r.model_id JOIN prompt_alias p ON p.prompt_id = a.prompt_id"
                )
            ).all()
        content = {row.key: (row.text, row.answer) for row in prompts}
        assert content == {
            key: (question.text, question.letter)
            for key, question in zip(simulation.keys, simulation.questions, strict=True)
        }
        expected = {
            (model, condition, key, letter)
            for condition, responses in (("full", simulation.full), ("answer_only", simulation.answer_only))
            for model, column in zip(simulation.models, format_letters(responses.predicted).T, strict=True)
            for key, letter in zip(simulation.keys, column.tolist(), strict=True)
        }
        assert {tuple(row) for row in answers} == expected

    def test_the_vectors_of_the_store_are_those_simulated(self, filled: sa.Engine, simulation: Simulation) -> None:
        with transaction(filled, write=False) as session:
            matrix = load_embeddings(session, Selection(benchmark=BENCHMARK))
            keys = read_stored_keys(session)
        place = {keys[prompt]: i for i, prompt in enumerate(matrix.prompt_ids.tolist())}
        assert np.array_equal(matrix.E[[place[key] for key in simulation.keys]], simulation.meaning)

    @pytest.mark.tampers
    def test_the_lines_beside_the_truth_are_computed_from_the_store(
        self, filled: sa.Engine, simulation: Simulation
    ) -> None:
        with transaction(filled, write=False) as session:
            lines = compare_with_truth(session, simulation)
        assert [line.planted.split()[0] for line in lines] == ["14", "6", "150", "60", "36", "meaning"]
        easy = (simulation.full.right.all(axis=1)).sum()
        assert lines[2].measured == f"{easy} prompts that every model solves, 150 of them planted"
        seen = simulation.answer_only.right[:, simulation.truth.remembers].mean()
        assert f"score {seen:.1%}" in lines[3].measured
        assert "cosine similarity 0.9" in lines[5].measured
        with filled.begin() as connection:
            connection.execute(sa.text("UPDATE score SET value = 1 - value"))
            vector = simulation.meaning[0].tobytes()
            connection.execute(sa.text("UPDATE embedding SET vector = :one"), {"one": vector})
        with transaction(filled, write=False) as session:
            changed = compare_with_truth(session, simulation)
        assert changed[3].measured != lines[3].measured
        assert "1.00 across" in changed[5].measured

    def test_the_selection_is_the_scores_and_not_the_probabilities(
        self, filled: sa.Engine, simulation: Simulation
    ) -> None:
        with transaction(filled, write=False) as session:
            assert load_performance_matrix(session, select_scores()).is_binary


class TestWriting:
    def test_a_file_that_is_there_is_left_as_it_is(self, simulation: Simulation, tmp_path: Path) -> None:
        write_files(simulation, tmp_path)
        before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
        write_files(simulate(seed=4), tmp_path)
        assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
        assert set(before) == {file.name for file in FILES}

    def test_a_benchmark_with_nothing_planted_can_be_written_too(self, tmp_path: Path) -> None:
        write_files(simulate(Design(n_prompts=60, n_easy=0, n_leaked=0, n_groups=0)), tmp_path)
        assert pq.read_table(tmp_path / "scores.parquet").num_rows == 60 * 14
