"""Archives that are damaged, made by others, or merged into a store that has data."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from archive_files import AWKWARD, RUN, Rows, packed, prompt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracker.database import connect, transaction
from tracker.errors import BadInputError, ConflictError, SuffrageError
from tracker.ingest.archives.layout import ROW_ORDER, archive_schema
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums
from tracker.queries.sql import tables

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
    path = tmp_path / "a.suffrage.zip"

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


class TestDamage:
    @pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.95, 0.999])
    def test_any_byte_of_a_table_that_changed_is_noticed(
        self, file_store: sa.Engine, tmp_path: Path, share: float
    ) -> None:
        whole = bytearray(packed(AWKWARD))
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            last = archive.getinfo("manifest.json").header_offset
        whole[int(share * last)] ^= 1
        path = tmp_path / "a.zip"
        path.write_bytes(whole)
        try:
            ingest_file(file_store, path, format="suffrage-archive")
        except BadInputError:
            assert column(file_store, tables.benchmark.c.id) == []
        else:  # a byte that only the zip's own header says
            (tmp_path / "b.zip").write_bytes(packed(AWKWARD))
            assert ingest_file(file_store, tmp_path / "b.zip").changes.summary() == "nothing new"

    def test_a_file_that_breaks_off_or_was_packed_anew_is_refused(self, file_store: sa.Engine, tmp_path: Path) -> None:
        path = tmp_path / "a.zip"
        path.write_bytes(packed(AWKWARD)[:-100])
        with pytest.raises(BadInputError, match="is not a complete archive"):
            ingest_file(file_store, path)
        whole = zipfile.ZipFile(io.BytesIO(packed(AWKWARD)))
        with whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as again:
            for name in whole.namelist():
                again.writestr(name, whole.read(name))
        with pytest.raises(BadInputError, match="another program has repacked it"):
            ingest_file(file_store, path)

    def test_an_archive_of_a_newer_program_is_an_error_that_names_it(
        self, file_store: sa.Engine, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.zip"
        wider = pa.table({"name": ["b"], "revision": [""], "colour": ["red"]})
        for data, problem in (
            (packed({}, manifest={"version": 2}), "is an archive of version 2; this version of Suffrage reads 1"),
            (packed({}, change={"benchmark": wider}), "the unknown columns 'colour'"),
        ):
            path.write_bytes(data)
            with pytest.raises(BadInputError, match=problem) as caught:
                ingest_file(file_store, path)
            assert "newer version" in str(caught.value)

    def test_an_older_archive_without_a_column_that_may_be_null_is_ingested(
        self, file_store: sa.Engine, tmp_path: Path
    ) -> None:
        runs = pa.Table.from_pylist([{**rows_of(1.0)["run"][0], "n_scores": 1}], archive_schema("run"))
        (tmp_path / "a.zip").write_bytes(
            packed(rows_of(1.0), change={"run": runs.drop_columns(["reason", "superseded_by"])})
        )
        assert ingest_file(file_store, tmp_path / "a.zip").changes.n_scores == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("rows", "problem"),
        [
            ({"benchmark": [{"name": "b", "revision": ""}] * 2}, "benchmark.parquet, row 2: '' is a duplicate"),
            ({"benchmark": [{"name": "a\0", "revision": ""}]}, "name contains a zero byte"),
            ({"task": [{"benchmark": 3, "name": ""}]}, "benchmark is not one of the 0 rows of benchmark"),
            (rows_of(float("nan")), "score.parquet, row 1: value is not a finite number"),
            (rows_of(2.0), "1 scores are outside the bounds of accuracy"),
            (rows_of(1.0, prompt=[prompt(0, "x", details="{")]), "its details are not valid JSON"),
            (rows_of(1.0, prompt=[prompt(0, "x", details="[1]")]), "its details are not a JSON dict"),
            (rows_of(1.0, run=[{**RUN, "benchmark": 0, "model": 0, "status": "odd"}]), "unknown status 'odd'"),
            (rows_of(1.0, run=[{**RUN, "benchmark": 0, "model": 0, "n_scores": 5}]), "its number of scores is not 5"),
            (rows_of(1.0, prompt_alias=[{"prompt": 0, "namespace": "", "key": "q"}] * 0, answer=[
                {"run": 0, "prompt": 0, "extraction": "", "trial": 0, "text": "", "probability": None, "status": "?"}
            ]), "an answer has the unknown status"),
            (rows_of(1.0, 1.0, prompt_alias=[{"prompt": n, "namespace": "", "key": "q"} for n in (0, 1)]),
             "'q' matches the same prompt as another row"),
            (rows_of(1.0, 1.0, prompt_alias=[{"prompt": n, "namespace": "", "key": str(n)} for n in (1, 0)]),
             "is out of order"),
        ],
    )  # fmt: skip
    def test_what_no_store_holds_is_refused_and_nothing_stored(
        self, took: Callable[..., Any], file_store: sa.Engine, rows: Rows, problem: str
    ) -> None:
        with pytest.raises(BadInputError) as caught:
            took(rows)
        assert problem in str(caught.value)
        assert column(file_store, tables.benchmark.c.id) == []

    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_rows_that_were_changed_and_sealed_again_are_stored_or_rejected_with_a_message(
        self, file_store: sa.Engine, tmp_path: Path, data: st.DataObject
    ) -> None:
        rows = {table: [dict(row) for row in table_rows] for table, table_rows in AWKWARD.items()}
        table = data.draw(st.sampled_from([name for name in ROW_ORDER if rows.get(name)]))
        row = data.draw(st.sampled_from(rows[table]))
        name = data.draw(st.sampled_from(list(row)))
        kind = archive_schema(table).field(name).type
        strange: dict[str, list[Any]] = {
            "string": ["", "x", "\0", "NaN", "[]", "{}", '"x"', "1" * 400, "q1", "#2"], "int32": [-1, 0, 1, 2**31 - 1],
            "int64": [-1, 0, 2**63 - 1], "double": [float("inf"), -1e308, 0.5], "bool": [True, False],
            "binary": [b"", b"1234", bytes(8)], "timestamp[us, tz=UTC]": [-(2**62), 0], "date32[day]": [-(2**30), 0],
        }  # fmt: skip
        row[name] = data.draw(st.sampled_from([*strange[str(kind)], None]))
        if data.draw(st.booleans()):
            rows[table] = data.draw(st.permutations(rows[table]))
        if data.draw(st.booleans()):
            rows[table].append(dict(data.draw(st.sampled_from(rows[table]))))
        path = tmp_path / "a.zip"
        loose = pa.schema([field.with_nullable(True) for field in archive_schema(table)])
        whole = {table: [dict(row) for row in rows[table]]}
        for place, run in enumerate(whole[table]) if table == "run" else ():
            run.setdefault("n_scores", sum(score["run"] == place for score in rows["score"]))
        path.write_bytes(packed(rows, change={table: pa.Table.from_pylist(whole[table], loose)}))
        before = column(file_store, tables.score.c.value)
        try:
            ingest_file(file_store, path, on_conflict=data.draw(st.sampled_from(["rerun", "skip", "update"])))
        except SuffrageError:
            assert column(file_store, tables.score.c.value) == before
        with transaction(file_store, write=False) as session:
            assert verify_checksums(session) == []
