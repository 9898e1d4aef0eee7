"""Scores of another benchmark: whose, of which models, which way they are better."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from filled_stores import add_scores

from tracker import schema
from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import AmbiguousError, NotFoundError, SelectionError
from tracker.queries.benchmark_scores import BenchmarkScores
from tracker.queries.selection import Selection

NAN = float("nan")
MODELS = ["ant", "bee", "cow"]
ELO = np.array([[1010.0, 990.0, NAN]])


def load(store: sa.Engine, output: str, **choices: object) -> BenchmarkScores:
    with transaction(store, write=False) as session:
        return BenchmarkScores.load(session, Selection(benchmark="b", against=output, **choices))


@pytest.fixture
def small(sqlite_store: sa.Engine) -> sa.Engine:
    """A benchmark with scores of prompts by three models, on SQLite only."""
    add_scores(sqlite_store, np.eye(3), models=MODELS)
    return sqlite_store


class TestScores:
    def test_they_are_means_by_the_names_of_the_models(self, store: sa.Engine) -> None:
        add_scores(store, np.eye(3), models=MODELS)
        Q = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
        runs = add_scores(store, Q, benchmark="arena", metric="wins", models=MODELS)
        result = load(store, "arena")
        assert (result.benchmark, result.metric, result.higher_is_better) == ("arena", "wins", True)
        assert result.scores == {"ant": 0.5, "bee": 0.0, "cow": 1.0}
        assert result.run_ids.tolist() == runs
        assert result.align(("cow", "dog", "ant")).tolist() == pytest.approx([1.0, NAN, 0.5], nan_ok=True)
        assert result.align(()).dtype == np.float64

    def test_of_a_measure_where_less_is_better_less_is_turned_into_more(self, small: sa.Engine) -> None:
        less = {"metric": "perplexity", "higher_is_better": False}
        add_scores(small, np.array([[3.0, 1.0]]), benchmark="p", models=MODELS, **less)
        result = load(small, "p")
        assert result.scores == {"ant": 3.0, "bee": 1.0}
        assert result.align(("ant", "bee")).tolist() == [-3.0, -1.0]

    def test_a_model_that_lacks_something_has_none(self, small: sa.Engine) -> None:
        add_scores(small, np.array([[1.0, 1.0, 0.0], [1.0, NAN, 0.0]]), benchmark="other", models=MODELS)
        result = load(small, "other")
        assert set(result.scores) == {"ant", "cow"}
        assert len(result.run_ids) == 2

    def test_a_table_of_elo_ratings_is_one(self, small: sa.Engine, tmp_path: Path) -> None:
        with transaction(small) as session:
            session.add(schema.ModelAlias(name="Bee (chat)", model_id=2))
        (tmp_path / "arena.csv").write_text("model,elo\nant,1010\nBee (chat),990\nunheard-of,1200\n")
        arguments = ["ingest", str(tmp_path / "arena.csv"), "--benchmark", "arena", "--database", str(small.url)]
        ingested = CliRunner().invoke(suffrage, arguments)
        assert ingested.exit_code == 0, ingested.output
        result = load(small, "arena")
        assert result.align(tuple(MODELS)).tolist() == pytest.approx([1010, 990, NAN], nan_ok=True)

    def test_only_what_was_known_at_the_date_of_the_question_counts(self, small: sa.Engine) -> None:
        add_scores(small, ELO, benchmark="arena", models=MODELS)
        later = datetime(2027, 1, 1, tzinfo=UTC)
        add_scores(small, ELO + 50, benchmark="arena", models=MODELS, label="later", ingested=later)
        assert load(small, "arena").scores["ant"] == 1060
        assert load(small, "arena", as_of=datetime(2026, 6, 1, tzinfo=UTC)).scores["ant"] == 1010


class TestNames:
    def test_a_benchmark_is_not_compared_with_itself(self, small: sa.Engine) -> None:
        with pytest.raises(SelectionError, match=r"--against b is the selected benchmark itself\. Name another one\."):
            load(small, "b")

    def test_of_several_metrics_one_is_named_after_a_colon(self, small: sa.Engine) -> None:
        add_scores(small, ELO, benchmark="arena", metric="elo", models=MODELS)
        add_scores(small, ELO / 1000, benchmark="arena", metric="wins,style:plain", models=MODELS)
        assert load(small, "arena:elo").metric == "elo"
        assert load(small, "arena:wins,style:plain").scores["ant"] == 1.01
        assert load(small, "arena").metric == "elo"
        with pytest.raises(NotFoundError, match=r"No metric 'eloo' with scores in arena\. Did you mean 'elo'"):
            load(small, "arena:eloo")

    def test_a_name_with_a_colon_goes_before_a_metric(self, small: sa.Engine) -> None:
        add_scores(small, ELO, benchmark="arena", metric="hard", models=MODELS)
        add_scores(small, ELO + 7, benchmark="arena:hard", metric="elo", models=MODELS)
        assert load(small, "arena:hard").scores["ant"] == 1017
        assert load(small, "arena:hard:elo").scores["ant"] == 1017

    def test_a_revision_can_be_named(self, small: sa.Engine) -> None:
        for revision in ("may", "june"):
            add_scores(small, ELO, benchmark="arena", revision=revision, models=MODELS)
        assert load(small, "arena@may:accuracy").benchmark == "arena@may"
        with pytest.raises(AmbiguousError, match="Name one: arena@june, arena@may"):
            load(small, "arena")

    @pytest.mark.parametrize("message", ["areno", "areno:elo", "", ":", "areno:a:b"])
    def test_an_unknown_benchmark_is_met_with_those_that_are_there(self, small: sa.Engine, message: str) -> None:
        add_scores(small, ELO, benchmark="arena", models=MODELS)
        with pytest.raises(NotFoundError) as caught:
            load(small, message)
        assert caught.value.known == ["arena", "b"]
        assert caught.value.name == message.partition(":")[0]


class TestDigest:
    def test_it_changes_with_scores_names_and_which_are_better(self, small: sa.Engine) -> None:
        add_scores(small, ELO, benchmark="arena", models=MODELS)
        item = load(small, "arena")
        rest = [
            replace(item, scores={**item.scores, "ant": 1011.0}),
            replace(item, scores={"ant": 1010.0}),
            replace(item, metric="elo"),
            replace(item, benchmark="arena@may"),
            replace(item, higher_is_better=False),
        ]
        assert item.digest == load(small, "arena").digest
        assert len({item.digest, *(second.digest for second in rest)}) == len(rest) + 1
