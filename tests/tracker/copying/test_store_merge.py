"""Stores that are damaged, made by others, or merged into a store that has data."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from example_stores import AWKWARD, RUN, Rows, packed, prompt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_rows import undo

from tracker.copying.partial_copy import MEASUREMENTS
from tracker.database import connect, create_unchecked_engine, transaction
from tracker.errors import BadInputError, ConflictError, SuffrageError
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums
from tracker.integrity.stored_checksums import replace_checksums
from tracker.queries.sql import tables
from tracker.schema import metadata

MODEL = {"organization": None, "family": None, "parameters": None, "released": None, "open_weights": None}


def rows_of(*scores: float, benchmark: str = "b", label: str = "", model: str = "m", **more: Any) -> dict[str, Any]:
    """A benchmark of as many prompts as scores, and one run."""
    n = len(scores)
    return {
        "benchmark": [{"name": benchmark, "revision": ""}],
        "task": [{"benchmark": 0, "name": "t"}],
        "metric": [{"name": "accuracy", "higher_is_better": True, "lower": 0.0, "upper": 1.0}],
        "model": [{"name": model, **MODEL}],
        "prompt": [prompt(0, f"{place}?") for place in range(n)],
        "prompt_alias": [{"prompt": place, "namespace": "", "key": f"q{place}"} for place in range(n)],
        "run": [{**RUN, "benchmark": 0, "model": 0, "label": label}],
        "score": [{"run": 0, "metric": 0, "prompt": at, "trial": 0, "value": v} for at, v in enumerate(scores)],
        **more,
    }


@pytest.fixture
def file_store(sqlite_url: str) -> Iterator[sa.Engine]:
    engine = connect(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def took(file_store: sa.Engine, tmp_path: Path) -> Callable[..., Any]:
    """Takes rows in as an archive; what that changed."""
    path = tmp_path / "a.db"

    def ingested(rows: Rows, *, options: ReadOptions | None = None, **more: Any) -> Any:
        path.write_bytes(packed(rows))
        return ingest_file(file_store, path, options, **more).changes

    return ingested


def column(engine: sa.Engine, query: sa.ColumnElement[Any]) -> list[Any]:
    with transaction(engine, write=False) as session:
        assert verify_checksums(session) == []
        return list(session.scalars(sa.select(query)))


class TestMerging:
    def test_runs_of_other_models_come_to_the_same_prompts(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0, 0.0))
        stored = took(rows_of(0.0, 0.0, 1.0, model="n"))
        assert stored.summary() == "1 new prompt, 1 new model, 1 new run, 3 scores"
        assert len(column(file_store, tables.prompt.c.id)) == 3

    def test_scores_that_agree_extend_the_run(self, took: Callable[..., Any], file_store: sa.Engine) -> None:
        took(rows_of(1.0, 0.0))
        assert took(rows_of(1.0, 0.0, 1.0)).summary() == "1 new prompt, 1 extended run, 1 score"
        assert column(file_store, tables.run.c.n_scores) == [3]

    def test_scores_that_contradict_a_run_without_a_name_make_a_new_one_once(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0, 0.0))
        two = rows_of(0.0, 0.0)
        two["run"] = [two["run"][0], {**two["run"][0], "label": "#2"}]
        two["score"] = [*two["score"], {"run": 1, "metric": 0, "prompt": 0, "trial": 0, "value": 0.5}]
        stored = took(two)
        assert [run.label for run in stored.runs_new] == ["#2", "#3"]
        assert any(
            "1 of 2 values differ from the stored ones; stored as a new run, #2" in warning
            for warning in stored.warnings
        )
        again = took(two)
        assert again.summary() == "nothing new"
        assert column(file_store, tables.run.c.label) == ["", "#2", "#3"]

    def test_scores_that_contradict_a_named_run_are_refused_kept_or_overwritten(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0, 0.0, label="2024"))
        changed_rows = rows_of(1.0, 1.0, label="2024")
        for how in ("rerun", "error"):
            with pytest.raises(ConflictError, match=r"m: 1 of 2 values differ .* for the run '2024'"):
                took(changed_rows, on_conflict=how)
        assert took(changed_rows, on_conflict="skip").n_scores_skipped == 1
        assert column(file_store, tables.score.c.value) == [1.0, 0.0]
        assert took(changed_rows, on_conflict="update").n_scores_updated == 1
        assert column(file_store, tables.score.c.value) == [1.0, 1.0]

    def test_a_prompt_is_known_by_its_content_and_gets_the_names_of_both(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0))
        harness = rows_of(0.0, model="n", prompt_alias=[{"prompt": 0, "namespace": "lm_eval", "key": "hash"}])
        stored = took(harness)
        assert "1 aliases of stored prompts added" in stored.warnings
        assert sorted(column(file_store, tables.prompt_alias.c.key)) == ["hash", "q0"]
        assert took(harness).summary() == "nothing new"

    def test_a_prompt_that_the_same_files_call_otherwise_is_another_one(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0))
        took(rows_of(0.0, model="n", prompt_alias=[{"prompt": 0, "namespace": "", "key": "other"}]))
        assert column(file_store, tables.prompt.c.occurrence) == [0, 1]

    def test_what_the_store_lacks_of_a_prompt_is_filled_in(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0, prompt=[prompt(0, None)]))
        took(rows_of(1.0, prompt=[prompt(0, "0?", ["a", "b"], answer="A", split="test", details='{"n": 1}')]))
        assert column(file_store, tables.prompt.c.text) == ["0?"]
        assert column(file_store, tables.prompt.c.choices) == [["a", "b"]]
        assert column(file_store, tables.prompt.c.details) == [{"n": 1}]

    def test_a_text_that_contradicts_the_stored_one_is_rejected_and_a_gold_answer_on_request(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0, prompt=[prompt(0, "0?", answer="A")]))
        with pytest.raises(BadInputError, match="line 1, prompt 'q0': its text contradicts the stored one"):
            took(rows_of(1.0, prompt=[prompt(0, "another?")]))
        changed_rows = rows_of(1.0, prompt=[prompt(0, "0?", answer="B")])
        with pytest.raises(BadInputError, match="reference answer 'B' contradicts the stored one, 'A'"):
            took(changed_rows)
        took(changed_rows, on_conflict="update")
        assert column(file_store, tables.prompt.c.answer) == ["B"]

    def test_models_are_known_by_any_name_and_get_facts_that_lack(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0, model="m"))
        full = rows_of(1.0, model="org/m", model_alias=[{"model": 0, "name": "m"}])
        full["model"] = [{**full["model"][0], "family": "f"}]
        assert "1 aliases of models added" in took(full).warnings
        assert column(file_store, tables.model.c.family) == ["f"]
        assert column(file_store, tables.model_alias.c.name) == ["org/m"]
        took(rows_of(1.0, model="x"))
        with pytest.raises(ConflictError, match="has x, m as names of one model, the store of m and x"):
            took(rows_of(1.0, model="x", model_alias=[{"model": 0, "name": "m"}]))

    def test_metrics_must_agree(self, took: Callable[..., Any]) -> None:
        took(rows_of(1.0))
        lower = {"name": "accuracy", "higher_is_better": False, "lower": 0.0, "upper": 1.0}
        with pytest.raises(ConflictError, match="in the store, higher accuracy is better"):
            took(rows_of(1.0, metric=[lower]))

    def test_vectors_that_differ_are_refused(self, took: Callable[..., Any]) -> None:
        encoder = [{"name": "e", "revision": "", "template": "question", "dimensions": 1}]
        took(rows_of(1.0, encoder=encoder, embedding=[{"encoder": 0, "prompt": 0, "vector": bytes(4)}]))
        with pytest.raises(ConflictError, match="1 vectors differ from the stored ones of e:question"):
            took(rows_of(1.0, encoder=encoder, embedding=[{"encoder": 0, "prompt": 0, "vector": b"abcd"}]))

    def test_a_benchmark_can_be_renamed_where_there_is_one(
        self, took: Callable[..., Any], file_store: sa.Engine
    ) -> None:
        took(rows_of(1.0), options=ReadOptions(benchmark="other@2", model="x"))
        assert column(file_store, tables.benchmark.c.name) == ["other"]
        assert column(file_store, tables.benchmark.c.revision) == ["2"]
        with pytest.raises(BadInputError, match="holds 3 benchmarks"):
            took(AWKWARD, options=ReadOptions(benchmark="other"))

    def test_a_file_that_an_archive_names_counts_as_ingested(
        self, took: Callable[..., Any], file_store: sa.Engine, tmp_path: Path
    ) -> None:
        from tracker.ingest.parsing.detection import parse_file

        table = tmp_path / "scores.csv"
        table.write_text("benchmark,model,prompt_id,score\nb,m,q0,1\n")
        parsed = parse_file(table, ReadOptions())
        source = {"identity": parsed.identity, "digest": parsed.digest, "path": "x", "format": parsed.format,
                  "harness": None, "ingested": RUN["ingested"]}  # fmt: skip
        took(rows_of(1.0, source=[source], run_source=[{"run": 0, "source": 0}]))
        assert ingest_file(file_store, table).changes.already_known


OLD = Path(__file__).parents[2] / "old_databases"


def changed(*statements: str) -> Callable[[sqlite3.Connection], None]:
    """Change a file with statements that no program of this project runs."""

    def change(raw: sqlite3.Connection) -> None:
        for statement in statements:
            raw.execute(statement)

    return change


def rewritten(pattern: str, text: str) -> Callable[[sqlite3.Connection], None]:
    """Change the definition of tables."""
    return changed(
        "PRAGMA writable_schema=ON", f"UPDATE sqlite_master SET sql = replace(sql, '{pattern}', '{text}')",
        "PRAGMA writable_schema=OFF",
    )  # fmt: skip


def seal(path: Path) -> None:
    """Give changed rows of a store their checksums, as anyone can."""
    engine = create_unchecked_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        replace_checksums(connection)
    engine.dispose()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA journal_mode=DELETE")


class TestDamage:
    def test_a_page_that_changed_or_is_missing_is_noticed(self, file_store: sa.Engine, tmp_path: Path) -> None:
        whole, path = packed(AWKWARD), tmp_path / "a.db"
        for place in range(0, len(whole), 4096):
            data = bytearray(whole)
            data[place + 5 : place + 400] = b"\xff" * 395
            path.write_bytes(data)
            try:
                ingest_file(file_store, path, format="suffrage-store")
            except BadInputError:
                assert column(file_store, tables.benchmark.c.id) == []
            else:  # a page that holds nothing of a measurement
                undo(file_store)
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(BadInputError, match=r"damaged|cannot be read"):
            ingest_file(file_store, path, format="suffrage-store")

    def test_a_changed_score_is_noticed(self, file_store: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        path.write_bytes(packed(rows_of(1.0, 0.0), changed("UPDATE score SET value = 0.25 WHERE prompt_id = 1")))
        with pytest.raises(BadInputError, match="the scores of run 1 do not match their checksum"):
            ingest_file(file_store, path)

    @pytest.mark.tampers
    def test_a_changed_text_is_noticed(self, file_store: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        path.write_bytes(packed(rows_of(1.0, 0.0), changed("UPDATE prompt SET text = 'x' WHERE id = 2")))
        with pytest.raises(BadInputError, match="is damaged: prompt 2 differs from what was stored"):
            ingest_file(file_store, path)

    def test_other_files_are_errors_that_name_the_fix(self, file_store: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        path.write_bytes(packed({}, changed("UPDATE suffrage_version SET version_num = '9999'")))
        with pytest.raises(BadInputError, match=r"is at version 9999.*\n.*newer version"):
            ingest_file(file_store, path)
        path.unlink()
        sqlite3.connect(path).execute("CREATE TABLE mine (x)")
        with pytest.raises(BadInputError, match="is a SQLite database, but not a store"):
            ingest_file(file_store, path)
        path.write_bytes(b"PK\x03\x04" + bytes(26) + b"suffrage-archive1\n")
        with pytest.raises(BadInputError, match=r"is an archive of Suffrage 0\.1\.\nExport it again"):
            ingest_file(file_store, path)
        with pytest.raises(BadInputError, match="is the store itself"):
            ingest_file(file_store, Path(str(file_store.url.database)))

    @pytest.mark.parametrize("dump", [min(OLD.glob("*.sql")), max(OLD.glob("*.sql"))], ids=lambda path: path.stem)
    def test_a_store_of_an_earlier_version_is_merged_and_stays_as_it_is(
        self, file_store: sa.Engine, tmp_path: Path, dump: Path
    ) -> None:
        path = tmp_path / "a.db"
        with closing(sqlite3.connect(path)) as raw:
            raw.executescript(dump.read_text())
        before = path.read_bytes()
        changes = ingest_file(file_store, path).changes
        assert changes.runs_new
        assert path.read_bytes() == before
        assert ingest_file(file_store, path).changes.summary() == "nothing new"


class TestErrors:
    @pytest.mark.tampers
    @pytest.mark.parametrize(
        ("statements", "problem"),
        [
            (["UPDATE benchmark SET name = 'a' || char(0)"], "benchmark: 1 rows: name is not a text, or has a zero"),
            (["UPDATE benchmark SET name = x'00ff'"], "benchmark: 1 rows: name is not a text"),
            (["UPDATE prompt SET task_id = 77"], "task_id is no row of task"),
            (["UPDATE run SET few_shot = 'five'"], "run: 1 rows: few_shot is not such a whole number"),
            (["UPDATE run SET few_shot = 1e300"], "run: 1 rows: few_shot is not such a whole number"),
            (["UPDATE score SET value = 9e999"], "score: 1 rows: value is not a finite number"),
            (["UPDATE score SET trial = -1"], "score: 1 rows: trial is not such a whole number"),
            (["UPDATE run SET status = 'odd'"], "run: 1 rows: breaks the rule status IN"),
            (["UPDATE prompt SET details = '{'"], "prompt cannot be read"),
            (["UPDATE prompt SET details = '[1]'"], "prompt 1: its details are not a JSON dict"),
            (["UPDATE prompt SET choices = '[1]'"], "prompt 1: its choices are not a JSON list"),
            (["UPDATE run SET ingested = 'now'"], "run cannot be read"),
            (["UPDATE run SET n_scores = 5"], "the scores of run 1 do not match their checksum"),
            (["UPDATE metric SET upper = 0.5"], "1 scores are outside the bounds of accuracy"),
            (["DROP TABLE answer"], "has no table answer"),
            (["DROP TABLE answer", "CREATE VIEW answer AS SELECT 1"], "has no table answer"),
            (["DROP TABLE answer", "CREATE TABLE answer (run_id)"], "its table answer has no column"),
            (["ALTER TABLE metric RENAME TO old", "CREATE TABLE metric AS SELECT * FROM old"], "lacks a key"),
        ],
    )  # fmt: skip
    def test_what_no_store_holds_is_refused_and_nothing_stored(
        self, file_store: sa.Engine, tmp_path: Path, statements: list[str], problem: str
    ) -> None:
        path = tmp_path / "a.db"
        path.write_bytes(packed(rows_of(1.0), changed(*statements)))
        if statements[0].startswith("UPDATE"):
            seal(path)
        with pytest.raises(BadInputError) as caught:
            ingest_file(file_store, path, format="suffrage-store")
        assert problem in str(caught.value)
        assert column(file_store, tables.benchmark.c.id) == []

    @pytest.mark.tampers
    def test_rules_that_the_file_does_not_have_are_checked_too(self, file_store: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        for statement in ("UPDATE score SET value = 9e999", "UPDATE run SET status = '?'"):

            def change(raw: sqlite3.Connection, statement: str = statement) -> None:
                rewritten("CHECK (", "CHECK (1 OR ")(raw)
                raw.commit()
                raw.execute("PRAGMA schema_version=99")
                raw.execute(statement)

            path.write_bytes(packed(rows_of(1.0), change))
            with pytest.raises(BadInputError, match=r"is not a finite number|breaks the rule status IN"):
                ingest_file(file_store, path)

    def test_names_of_one_prompt_for_two_are_refused(self, took: Callable[..., Any]) -> None:
        took(rows_of(1.0, 1.0))
        with pytest.raises(BadInputError, match=r"matches the same prompt as another row|match 2 prompts"):
            took(rows_of(1.0, 1.0, prompt=[prompt(0, "new 0"), prompt(0, "new 1")], prompt_alias=[
                {"prompt": 0, "namespace": "", "key": "q0"}, {"prompt": 0, "namespace": "", "key": "q1"},
            ]))  # fmt: skip

    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_values_that_were_changed_in_the_file_are_stored_or_rejected_with_a_message(
        self, file_store: sa.Engine, tmp_path: Path, data: st.DataObject
    ) -> None:
        name = data.draw(st.sampled_from([name for name in MEASUREMENTS if AWKWARD[name]]))
        field = data.draw(st.sampled_from(list(metadata.tables[name].c.keys())))
        strange = ["", "x", "\0", "NaN", "[]", "{}", '"x"', "1" * 400, "q1", "#2", -1, 0, 1, 2**31, 2**63 - 1, 0.5]
        strange += [float("inf"), -1e308, b"", b"1234", bytes(8), None, "2024-02-31", "2024-02-03 00:00:00.000000"]
        value = data.draw(st.sampled_from(strange))
        path = tmp_path / "a.db"

        def change(raw: sqlite3.Connection) -> None:
            with suppress(sqlite3.IntegrityError):
                raw.execute(
                    f"UPDATE {name} SET {field} = ? WHERE {field} IS (SELECT max({field}) FROM {name})", [value]
                )

        path.write_bytes(packed(AWKWARD, change))
        seal(path)
        before = column(file_store, tables.score.c.value)
        try:
            ingest_file(file_store, path, on_conflict=data.draw(st.sampled_from(["rerun", "skip", "update"])))
        except SuffrageError:
            assert column(file_store, tables.score.c.value) == before
        with transaction(file_store, write=False) as session:
            assert verify_checksums(session) == []
