"""A finding that runs again on its data gives the bytes that are stored; where it does not, the report says why.

The commands of docs/reference/integrity.md are tested too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from PIL import Image
from store_rows import rows_of

from tracker.api.store import Store
from tracker.cli import suffrage
from tracker.database import connect, create_reading_engine, transaction
from tracker.errors import NotFoundError
from tracker.queries.selection import Selection
from tracker.queries.sql import tables
from tracker.recording.pipeline import run_analysis
from tracker.recording.reproduction.reproduction import Reproduction, list_reproducible, reproduce, summarize
from tracker.recording.verdict.recorded_verdict import record_verdict

ARITHMETIC = Selection(benchmark="arithmetic")

pytestmark = pytest.mark.usefixtures("toys")


@pytest.fixture
def recorded(filled: sa.Engine) -> sa.Engine:
    """A store with a finding, on each engine in turn."""
    run_analysis(filled, "toy", ARITHMETIC)
    return filled


@pytest.fixture
def recorded_file(filled_file: sa.Engine) -> sa.Engine:
    """The same, on SQLite only."""
    run_analysis(filled_file, "toy", ARITHMETIC)
    return filled_file


def reproduce_all(engine: sa.Engine) -> list[Reproduction]:
    return [*reproduce(engine, list_reproducible(engine))]


def reproduce_first(engine: sa.Engine) -> Reproduction:
    return next(reproduce(engine, list_reproducible(engine, [1])))


def execute(engine: sa.Engine, statement: str, **values: object) -> None:
    with transaction(engine) as session:
        session.execute(sa.text(statement), values)


class TestEqual:
    def test_a_finding_is_equal_and_nothing_is_written(self, recorded: sa.Engine) -> None:
        before = rows_of(recorded)
        (reproduction,) = reproduce_all(create_reading_engine(recorded))
        assert (reproduction.result, reproduction.details, reproduction.code) == ("equal", "", "")
        assert rows_of(recorded) == before

    def test_later_runs_do_not_matter(self, recorded: sa.Engine) -> None:
        """The data of the digest are found by the time of the finding, and by the keys of its runs."""
        columns = "benchmark_id, model_id, condition, variant, limited, n_scores, checksum"
        execute(
            recorded,
            f"INSERT INTO run ({columns}, label, status, ingested) SELECT {columns}, '2', 'complete', "
            "'2999-01-01 00:00:00.000000' FROM run WHERE id = 2",
        )
        execute(
            recorded,
            "INSERT INTO score SELECT 6, metric_id, prompt_id, trial, 1 - value FROM score WHERE run_id = 2",
        )
        assert reproduce_first(recorded).result == "equal"
        execute(recorded, "UPDATE run SET status = 'superseded', superseded_by = 6 WHERE id = 2")
        assert reproduce_first(recorded).result == "equal"

    def test_a_verdict_is_equal(self, filled_file: sa.Engine) -> None:
        execute(filled_file, "UPDATE metric SET lower = 0, upper = 1")
        record_verdict(filled_file, ARITHMETIC)
        (reproduction,) = reproduce_all(filled_file)
        assert (reproduction.analysis, reproduction.result, reproduction.details) == ("verdict", "equal", "")


class TestDifferent:
    @pytest.mark.parametrize(
        ("statement", "details"),
        [
            ("UPDATE finding_metric SET value = value + 1 WHERE name = 'mean'", "metric mean: 1."),
            ("UPDATE prompt_value SET value = 7 WHERE prompt_id = 5", "prompt value "),
            ("DELETE FROM ranking WHERE model_id = 3", "is new"),
            ("UPDATE finding SET headline = 'changed'", "headline: 'changed', now "),
        ],
    )
    def test_what_differs_is_named(self, recorded: sa.Engine, statement: str, details: str) -> None:
        execute(recorded, statement)
        reproduction = reproduce_first(recorded)
        assert reproduction.result == "differs"
        assert details in reproduction.details

    def test_changed_data_are_no_failure_and_name_their_run(self, recorded: sa.Engine) -> None:
        execute(recorded, "UPDATE score SET value = 1 - value WHERE run_id = 3")
        execute(recorded, "UPDATE run SET checksum = 'changed' WHERE id = 3")
        reproduction = reproduce_first(recorded)
        assert (reproduction.result, reproduction.details) == ("data changed", "changed since: run 3")

    def test_another_version_of_the_code_is_named(self, recorded: sa.Engine) -> None:
        execute(recorded, "UPDATE finding SET code_version = 'toys 0.1'")
        reproduction = reproduce_first(recorded)
        assert reproduction.result == "equal"
        assert reproduction.code.startswith("toys 0.1, now ")

    def test_findings_that_cannot_run_again_have_a_reason(self, recorded: sa.Engine) -> None:
        execute(recorded, "UPDATE finding SET analysis = 'gone'")
        assert reproduce_first(recorded).details == "no analysis gone is installed"
        execute(recorded, "UPDATE finding SET status = 'failed'")
        assert reproduce_first(recorded).result == "not run"
        assert reproduce_all(recorded) == []


@pytest.mark.usefixtures("full_figures")
class TestFigures:
    def replace_figure(self, engine: sa.Engine, *, shade: int) -> None:
        with transaction(engine) as session:
            name, content = session.execute(
                sa.select(tables.finding_artifact.c.name, tables.finding_artifact.c.content).where(
                    tables.finding_artifact.c.media_type == "image/png"
                )
            ).first() or ("", b"")
            image, buffer = Image.open(BytesIO(content)), BytesIO()
            image.point(lambda dot: max(0, dot - shade)).save(buffer, "png", compress_level=1)
            assert buffer.getvalue() != content
            session.execute(
                sa.update(tables.finding_artifact)
                .where(tables.finding_artifact.c.name == name)
                .values(content=buffer.getvalue())
            )

    def test_a_figure_is_drawn_again_to_the_byte(self, recorded_file: sa.Engine) -> None:
        assert reproduce_first(recorded_file).result == "equal"

    @pytest.mark.parametrize(("shade", "details"), [(0, "other bytes, equal data"), (9, "drawn differently")])
    def test_a_figure_with_other_bytes_is_compared_by_its_data(
        self, recorded_file: sa.Engine, shade: int, details: str
    ) -> None:
        self.replace_figure(recorded_file, shade=shade)
        reproduction = reproduce_first(recorded_file)
        assert reproduction.result == "equal data"
        assert details in reproduction.details
        execute(recorded_file, "UPDATE finding_metric SET value = 7 WHERE name = 'mean'")
        assert reproduce_first(recorded_file).result == "differs"


class TestCommand:
    @pytest.fixture
    def invoke(self, recorded_file: sa.Engine) -> Callable[..., Result]:
        url = recorded_file.url.render_as_string(hide_password=False)
        return lambda *arguments: CliRunner().invoke(suffrage, ["reproduce", *arguments, "--database", url])

    def test_exit_codes(self, invoke, recorded_file: sa.Engine) -> None:
        equal = invoke("1")
        assert (equal.exit_code, equal.stderr) == (0, "1 of 1 finding reproduced byte for byte.\n")
        as_json = invoke("--all", "--format", "json")
        assert [row["result"] for row in json.loads(as_json.stdout)] == ["equal"]
        execute(recorded_file, "UPDATE run SET checksum = 'changed' WHERE id = 3")
        execute(recorded_file, "UPDATE score SET value = 1 - value WHERE run_id = 3")
        changed = invoke("--benchmark", "arithmetic")
        assert (changed.exit_code, changed.stderr.split("; ")[1]) == (
            2,
            "1 not compared, since the data have changed.\n",
        )
        run_analysis(recorded_file, "toy", ARITHMETIC)
        execute(recorded_file, "UPDATE finding_metric SET value = 7 WHERE name = 'mean' AND finding_id = 2")
        assert invoke("1", "2").exit_code == 1

    def test_findings_are_named_once(self, invoke) -> None:
        for arguments in ([], ["1", "--all"], ["--all", "--benchmark", "arithmetic"]):
            refused = invoke(*arguments)
            assert refused.exit_code == 2
            assert "Name findings by their IDs" in refused.output
        assert invoke("7").exit_code == 1

    def test_the_same_in_python(self, recorded_file: sa.Engine) -> None:
        store = Store(recorded_file)
        assert [row.result for row in store.reproduce(1)] == [row.result for row in store.reproduce()] == ["equal"]
        with pytest.raises(NotFoundError):
            store.reproduce(7)


def test_no_findings_are_no_failure(sqlite_url: str) -> None:
    engine = connect(sqlite_url)
    assert summarize(reproduce_all(engine)) == "There are no findings to reproduce."
