"""`suffrage models import`: what the store knows of models, filled in from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from command_runner import run, written

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import BadInputError
from tracker.ingest.write.model_facts import read_model_facts
from tracker.queries.catalogue.listing import list_models
from tracker.queries.sql import tables

SCORES = "prompt_id,org/small,org/large,lab-tiny\n" + "".join(f"p{i},{i % 2},1,0\n" for i in range(4))


def known(engine: sa.Engine) -> dict[str, tuple[object, ...]]:
    """Facts and aliases by model."""
    with transaction(engine, write=False) as session:
        return {
            row.name: (row.organization, row.family, row.parameters, row.released, row.open_weights, row.aliases)
            for row in list_models(session)
        }


@pytest.fixture
def empty_file(sqlite_url: str) -> Iterator[sa.Engine]:
    """An empty store on SQLite."""
    engine = connect(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def three(store: sa.Engine, tmp_path: Path) -> sa.Engine:
    """A store with three models; the organization of two is told from their names."""
    run(store, "ingest", written(tmp_path / "scores.csv", SCORES), "--benchmark", "b", "--no-mlflow")
    return store


@pytest.fixture
def three_file(empty_file: sa.Engine, tmp_path: Path) -> sa.Engine:
    """The same on SQLite alone."""
    scores = written(tmp_path / "scores.csv", SCORES)
    run(empty_file, "ingest", scores, "--benchmark", "b", "--no-mlflow")
    return empty_file


class TestImport:
    def test_missing_facts_are_filled_in_and_listed(self, three: sa.Engine, tmp_path: Path) -> None:
        text = (
            "Model,Organization,Family,Parameters,Released,Open weights,alias\n"
            "lab-tiny,Lab,tiny,1.5B,2024-05-31,yes,tiny-chat\n"
            "lab-tiny,,,,,,lab/tiny\n"
            "org/large,org,NA,70b,,no,\n"
        )
        result = run(three, "models", "import", written(tmp_path / "facts.csv", text))
        assert known(three) == {
            "lab-tiny": ("Lab", "tiny", 1_500_000_000, date(2024, 5, 31), True, ("lab/tiny", "tiny-chat")),
            "org/large": ("org", None, 70_000_000_000, None, False, ()),
            "org/small": ("org", None, None, None, None, ()),
        }
        assert result.stderr.splitlines() == [
            f"{tmp_path / 'facts.csv'}: facts of models: 7 filled in, 2 as other names, 1 stored before",
            "  lab-tiny: organization 'Lab'",
            "  lab-tiny: family 'tiny'",
            "  lab-tiny: parameters 1,500,000,000",
            "  lab-tiny: released 2024-05-31",
            "  lab-tiny: open_weights yes",
            "  org/large: parameters 70,000,000,000",
            "  org/large: open_weights no",
            "  lab-tiny: alias tiny-chat",
            "  lab-tiny: alias lab/tiny",
        ]
        header, _, first, *_ = result.stdout.splitlines()
        assert header.split() == ["name", "organization", "open", "weights", "parameters", "n", "runs", "benchmarks"]
        assert first.split() == ["lab-tiny", "Lab", "yes", "1500000000", "1", "b"]

    def test_the_same_file_again_changes_nothing(self, three_file: sa.Engine, tmp_path: Path) -> None:
        file = written(tmp_path / "facts.csv", "model,open_weights,alias\nlab-tiny,no,tiny\n")
        run(three_file, "models", "import", file)
        before = known(three_file)
        assert "facts of models: 2 stored before" in run(three_file, "models", "import", file).stderr
        assert known(three_file) == before

    @pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl"])
    def test_every_kind_of_file_means_the_same(self, three_file: sa.Engine, tmp_path: Path, kind: str) -> None:
        path = tmp_path / f"facts.{kind}"
        rows = {
            "model": ["lab-tiny", "org/small"],
            "parameters": [7_000_000_000, None],
            "released": [date(2024, 2, 29), None],
            "open_weights": [True, False],
        }
        if kind == "parquet":
            pq.write_table(pa.table(rows), path)
        elif kind == "jsonl":
            lines = [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
            path.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines))
        else:
            cells = [
                [*rows],
                *([("" if c is None else str(c)) for c in row] for row in zip(*rows.values(), strict=True)),
            ]
            path.write_text("".join((("," if kind == "csv" else "\t").join(row)) + "\n" for row in cells))
        run(three_file, "models", "import", str(path))
        actual = known(three_file)
        assert actual["lab-tiny"] == (None, None, 7_000_000_000, date(2024, 2, 29), True, ())
        assert actual["org/small"] == ("org", None, None, None, False, ())

    def test_another_name_is_understood_from_then_on(self, three_file: sa.Engine, tmp_path: Path) -> None:
        run(three_file, "models", "import", written(tmp_path / "a.csv", "model,alias\nlab-tiny,tiny\n"))
        run(three_file, "models", "import", written(tmp_path / "b.csv", "model,family\ntiny,small ones\n"))
        assert known(three_file)["lab-tiny"][1] == "small ones"
        more = written(tmp_path / "more.csv", "prompt_id,tiny\np9,1\n")
        assert "new model" not in run(three_file, "ingest", more, "--benchmark", "b", "--no-mlflow").stderr
        assert "lab-tiny" in run(three_file, "leaderboard", "b", "--models", "tiny").stdout

    def test_stored_facts_are_changed_only_by_overwrite(self, three: sa.Engine, tmp_path: Path) -> None:
        file = written(tmp_path / "facts.csv", "model,organization,family\norg/small,Other,f\norg/large,org,f\n")
        before = known(three)
        with pytest.raises(BadInputError) as caught:
            run(three, "models", "import", file)
        assert caught.value.problems == ["line 2: the store has organization 'org' for org/small, not 'Other'"]
        assert str(caught.value).endswith("Replace the stored facts with --overwrite.")
        assert known(three) == before
        message = run(three, "models", "import", file, "--overwrite").stderr
        assert "2 filled in, 1 changed, 1 stored before" in message
        assert "  changed: org/small: organization 'Other', before 'org'\n" in message
        assert known(three)["org/small"][:2] == ("Other", "f")

    def test_columns_that_are_no_facts_are_named(self, three_file: sa.Engine, tmp_path: Path) -> None:
        file = written(tmp_path / "facts.csv", "model,family,licence\nlab-tiny,f,MIT\n")
        assert (
            "ignored columns that are no facts of models: licence" in run(three_file, "models", "import", file).stderr
        )

    def test_of_many_facts_twenty_are_listed(self, empty_file: sa.Engine, tmp_path: Path) -> None:
        names = [f"m{i}" for i in range(23)]
        scores = written(tmp_path / "s.csv", f"prompt_id,{','.join(names)}\np,{','.join('1' * 23)}\n")
        run(empty_file, "ingest", scores, "--benchmark", "b", "--no-mlflow")
        file = written(tmp_path / "f.csv", "model,family\n" + "".join(f"{name},f\n" for name in names))
        message = run(empty_file, "models", "import", file).stderr.splitlines()
        assert message[1] == "  m0: family 'f'"
        assert message[20:] == ["  m19: family 'f'", "  and 3 more"]


class TestErrors:
    def test_everything_that_contradicts_the_store_is_listed_and_nothing_stored(
        self, three: sa.Engine, tmp_path: Path
    ) -> None:
        run(three, "models", "import", written(tmp_path / "a.csv", "model,alias\norg/large,big\n"))
        before = known(three)
        text = (
            "model,family,alias\nlab-tini,x,\norg/small,f,org/large\norg/small,,big\norg/large,f,one name\n"
            "big,g,\nlab-tiny,,one name\n"
        )
        with pytest.raises(BadInputError) as caught:
            run(three, "models", "import", written(tmp_path / "facts.csv", text))
        assert caught.value.problems == [
            "line 2: the store has no model 'lab-tini'; did you mean lab-tiny?",
            "line 3: 'org/large' cannot be an alias of org/small: it names the model org/large",
            "line 4: 'big' cannot be an alias of org/small: it names the model org/large",
            "line 6: family: org/large has 'f' in line 5",
            "line 7: 'one name' cannot be an alias of lab-tiny: it names the model org/large",
        ]
        assert known(three) == before

    def test_values_that_are_none_are_listed_with_their_places(self, three_file: sa.Engine, tmp_path: Path) -> None:
        text = (
            "model,parameters,released,open_weights,family\nlab-tiny,7,2024-13-01,perhaps,a\n,1,,,\n"
            "org/large,lots,May,2,\nlab-tiny,,,,b\n"
        )
        with pytest.raises(BadInputError) as caught:
            run(three_file, "models", "import", written(tmp_path / "facts.csv", text))
        assert caught.value.problems == [
            "line 2, column 'parameters': '7' is not a number of parameters, such as 7000000000 or 7B",
            "line 2, column 'released': '2024-13-01' is not a date such as 2024-05-31",
            "line 2, column 'open_weights': 'perhaps' is not yes or no",
            "line 3, column 'model': does not name a model",
            "line 4, column 'parameters': 'lots' is not a number of parameters, such as 7000000000 or 7B",
            "line 4, column 'released': 'May' is not a date such as 2024-05-31",
            "line 4, column 'open_weights': '2' is not yes or no",
            "line 5, column 'family': lab-tiny has 'a' in line 2",
        ]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("name,family\nm,f\n", "no column model. Its columns: name, family."),
            ("model,licence\nm,MIT\n", "no column holds facts of models. Its columns: model, licence."),
            ("model,family\n", "has a header but no rows."),
            ("", "is empty."),
        ],
    )
    def test_a_file_without_facts_is_refused(
        self, empty_file: sa.Engine, tmp_path: Path, text: str, message: str
    ) -> None:
        with pytest.raises(BadInputError) as caught:
            run(empty_file, "models", "import", written(tmp_path / "facts.csv", text))
        assert message in str(caught.value)

    def test_an_empty_store_is_an_error(self, empty_file: sa.Engine, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="the store has no model 'm'; it has none yet"):
            run(empty_file, "models", "import", written(tmp_path / "facts.csv", "model,family\nm,f\n"))

    def test_overwriting_without_a_file_is_a_mistake(self) -> None:
        result = CliRunner().invoke(suffrage, ["models", "import", "--overwrite"])
        assert result.exit_code == 2
        assert "Missing argument 'FILE'" in result.output


class TestNumbersOfParameters:
    @pytest.mark.parametrize(
        ("cell", "count"),
        [
            ("7000000000", 7_000_000_000),
            ("7,000,000,000", 7_000_000_000),
            ("7B", 7_000_000_000),
            ("7.24 b", 7_240_000_000),
            ("350M", 350_000_000),
            ("1.8T", 1_800_000_000_000),
            ("7e9", 7_000_000_000),
            ("1000", 1000),
        ],
    )
    def test_they_are_read_with_and_without_a_unit(self, tmp_path: Path, cell: str, count: int) -> None:
        file = read_model_facts(Path(written(tmp_path / "f.tsv", f"model\tparameters\nm\t{cell}\n")))
        assert file.facts["m"]["parameters"][0] == count

    @pytest.mark.parametrize("cell", ["7", "999", "7,5B", "7.5", "-7B", "7 billion", "0", "1e19", "9999999T", "1e99T"])
    def test_what_is_none_or_may_mean_another_unit_is_refused(self, tmp_path: Path, cell: str) -> None:
        with pytest.raises(BadInputError, match="is not a number of parameters"):
            read_model_facts(Path(written(tmp_path / "f.tsv", f"model\tparameters\nm\t{cell}\n")))


def test_tables_hold_the_imported_facts(three: sa.Engine, tmp_path: Path) -> None:
    run(
        three,
        "models",
        "import",
        written(tmp_path / "f.csv", "model,released,open_weights\nlab-tiny,2024-01-02,yes\n"),
    )
    with transaction(three, write=False) as session:
        model = tables.model.c
        actual = session.execute(sa.select(model.released, model.open_weights).where(model.name == "lab-tiny")).one()
    assert tuple(actual) == (date(2024, 1, 2), True)
