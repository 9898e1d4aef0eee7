"""`suffrage weights`: weights from a file, and `--weights` on the leaderboard."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from command_runner import run, written
from mlflow import MlflowClient

from tracker.cli import suffrage
from tracker.database import transaction
from tracker.errors import AmbiguousError, BadInputError, NotFoundError
from tracker.queries.findings.finding_records import get_finding
from tracker.queries.sql import tables
from tracker.recording.rerun_command import rerun_command

HALF = "".join(f"p{i},{i % 4}\n" for i in range(20))


def stored(engine: sa.Engine, key: int) -> dict[str, float]:
    """Weight by the prompt's name."""
    alias, value = tables.prompt_alias.c, tables.prompt_value.c
    with transaction(engine, write=False) as session:
        query = sa.select(alias.key, value.value).join(tables.prompt_value, value.prompt_id == alias.prompt_id)
        return dict(session.execute(query.where(value.finding_id == key)).all())


def n_findings(engine: sa.Engine) -> int:
    with transaction(engine, write=False) as session:
        return int(session.scalar(sa.select(sa.func.count()).select_from(tables.finding)))


class TestIngest:
    def test_weights_become_a_finding_that_every_command_knows(
        self, filled: sa.Engine, tmp_path: Path, tracking_uri: str
    ) -> None:
        file = written(tmp_path / "my weights.csv", f"Prompt_ID,Weight\n{HALF}")
        result = run(filled, "weights", "arithmetic", file, "--tracking-uri", tracking_uri)
        assert " ".join(result.stdout.split()) == (
            "my weights.csv gives weights to 20 of 40 prompts of arithmetic. "
            "- The effective number of prompts is 12.9. "
            "Caveat: 20 prompts without a weight in the file: every command excludes them when it uses these weights. "
            "Caveat: 5 prompts with weight 0: every command excludes them when it uses these weights."
        )
        assert result.stderr == "Recorded as finding 1: suffrage leaderboard arithmetic --weights 1\n"
        assert stored(filled, 1) == {f"p{i}": i % 4 for i in range(20)}
        displayed = run(filled, "show", "1").stdout
        assert "custom-weights on arithmetic" in displayed
        assert "name my-weights" in displayed
        assert "file my weights.csv" in displayed
        assert "n_effective" in displayed
        assert "custom-weights" in run(filled, "findings").stdout
        listing = run(filled, "sql", "SELECT DISTINCT scheme, count(*) AS n FROM prompt_weight GROUP BY scheme").stdout
        assert listing.split()[-2:] == ["my-weights", "20"]
        client = MlflowClient(tracking_uri)
        [experiment] = [e for e in client.search_experiments() if e.name == "suffrage/custom-weights"]
        [run_shown] = client.search_runs([experiment.experiment_id])
        assert run_shown.data.metrics["n_prompts"] == 20
        assert run_shown.data.params["file"] == "my weights.csv"

    def test_the_command_that_repeats_it_records_the_same_weights(
        self, filled: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        written(tmp_path / "my weights.csv", f"prompt_id,weight\n{HALF}")
        run(filled, "weights", "arithmetic", "my weights.csv", "--no-mlflow")
        with transaction(filled, write=False) as session:
            command = rerun_command(get_finding(session, 1))
        assert command == "suffrage weights arithmetic 'my weights.csv' --name my-weights"
        run(filled, *shlex.split(command)[1:], "--no-mlflow")
        assert stored(filled, 2) == stored(filled, 1)

    def test_publish_makes_up_for_what_was_not_shown(
        self, filled_file: sa.Engine, tmp_path: Path, tracking_uri: str
    ) -> None:
        run(
            filled_file,
            "weights",
            "arithmetic",
            written(tmp_path / "w.csv", f"prompt_id,weight\n{HALF}"),
            "--no-mlflow",
        )
        assert "1 finding" in run(filled_file, "publish", "--tracking-uri", tracking_uri).stderr

    @pytest.mark.parametrize("name", ["w.csv", "w.csv.gz", "w.parquet", "w.jsonl", "w.jsonl.gz"])
    def test_all_kinds_of_files_give_the_same_weights(self, filled_file: sa.Engine, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        rows = [{"prompt_id": f"p{i}", "task": f"task {i % 3}", "weight": i / 8} for i in range(40)]
        if name.endswith(".parquet"):
            pq.write_table(pa.Table.from_pylist(rows), path)
        else:
            lines = [json.dumps(row) for row in rows]
            if ".csv" in name:
                lines = ["prompt_id,task,weight", *(",".join(map(str, row.values())) for row in rows)]
            content = "\n".join([*lines, ""]).encode()
            path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        run(filled_file, "weights", "arithmetic", str(path), "--no-mlflow")
        assert stored(filled_file, 1) == {f"p{i}": i / 8 for i in range(40)}
        with transaction(filled_file, write=False) as session:
            assert session.scalars(sa.select(tables.prompt_value.c.name).distinct()).all() == ["weight.w"]

    def test_a_name_is_kept_and_checked(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        file = written(tmp_path / "w.csv", f"prompt_id,weight\n{HALF}")
        run(filled_file, "weights", "arithmetic", file, "--name", "by_hand", "--no-mlflow")
        assert "--weights" in run(filled_file, "leaderboard", "--help").stdout
        assert "by 1:by_hand" in run(filled_file, "leaderboard", "arithmetic", "--weights", "1:by_hand").stderr
        result = CliRunner().invoke(suffrage, ["weights", "arithmetic", file, "--name", "a:b"])
        assert result.exit_code == 2
        assert "use letters, digits, dots, dashes and underscores only" in result.output

    def test_the_next_command_is_quoted_for_the_shell(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        scores = written(tmp_path / "scores.csv", "prompt_id,model,score\np0,a,1\np1,a,0\n")
        run(filled_file, "ingest", scores, "--benchmark", "two words@v 1", "--no-mlflow")
        file = written(tmp_path / "w.csv", "prompt_id,weight\np0,1\np1,3\n")
        text = run(filled_file, "weights", "two words@v 1", file, "--no-mlflow").stderr.strip()
        assert text == "Recorded as finding 1: suffrage leaderboard 'two words@v 1' --weights 1"
        assert run(filled_file, *shlex.split(text.partition("suffrage ")[2])).stdout
        unknown = written(tmp_path / "unknown.csv", "prompt_id,weight\nnobody,1\n")
        with pytest.raises(BadInputError, match="--benchmark 'two words@v 1'"):
            run(filled_file, "weights", "two words@v 1", unknown, "--no-mlflow")


class TestErrors:
    def test_everything_wrong_is_listed_and_nothing_stored(self, filled: sa.Engine, tmp_path: Path) -> None:
        lines = ["p0,-1", "p0,2", "nobody,3", ",4", "p1,NaN", "p2,", "p3,much", "p4,inf", "p5,1"]
        file = written(tmp_path / "w.csv", "\n".join(["prompt_id,weight", *lines, ""]))
        with pytest.raises(BadInputError) as caught:
            run(filled, "weights", "arithmetic", file, "--no-mlflow")
        text = str(caught.value).splitlines()
        assert text[0] == f"{file}: 8 problems, nothing was stored:"
        assert text[1:9] == [
            "  line 2, column 'weight': the weight -1 is negative",
            "  line 3: duplicate prompt 'p0', also in line 2",
            "  line 4: arithmetic has no prompt 'nobody'",
            "  line 5, column 'prompt_id': does not name a prompt",
            "  line 6, column 'weight': 'NaN' is not a finite number; leave the cell empty if there is no score",
            "  line 7, column 'weight': no weight; write 0, or delete the row",
            "  line 8, column 'weight': 'much' is not a number",
            "  line 9, column 'weight': 'inf' is not a finite number; leave the cell empty if there is no score",
        ]
        assert text[9].startswith("Use the prompt names of the ingested files. To ingest one: suffrage ingest")
        assert n_findings(filled) == 0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("prompt_id,weight\np0,0\np1,0\n", "all weights are 0. Give at least one prompt a positive weight."),
            ("prompt_id,score\np0,1\n", "no column weight. Its columns: prompt_id, score."),
            ("name,weight\np0,1\n", "no column prompt_id. Its columns: name, weight."),
            ("prompt_id,weight\n", "has a header but no rows."),
            ("", "is empty."),
            ("prompt_id,task,weight\np0,task 1,1\n", "line 2: arithmetic has no prompt 'p0' in the task 'task 1'"),
        ],
    )
    def test_a_file_that_weighs_nothing_is_refused(
        self, filled_file: sa.Engine, tmp_path: Path, text: str, message: str
    ) -> None:
        with pytest.raises(BadInputError) as caught:
            run(filled_file, "weights", "arithmetic", written(tmp_path / "w.csv", text), "--no-mlflow")
        assert message in str(caught.value)
        assert n_findings(filled_file) == 0

    def test_a_line_that_is_no_object_is_named(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        text = '{"prompt_id": "p0", "weight": 1}\n\n[1]\n{"prompt_id"\n{"prompt_id": "p1", "weight": true}\n'
        with pytest.raises(BadInputError) as caught:
            run(filled_file, "weights", "arithmetic", written(tmp_path / "w.jsonl", text), "--no-mlflow")
        assert caught.value.problems == ["line 3: is not a JSON object", "line 4: is not a JSON object"]

    def test_names_that_mean_several_prompts_need_tasks(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        with transaction(filled_file) as session:
            alias = tables.prompt_alias
            first = session.execute(sa.select(alias).where(alias.c.key == "p0")).one()
            another = session.execute(sa.select(alias).where(alias.c.key == "p1")).one()
            values = {"task_id": another.task_id, "namespace": "", "key": "p0", "prompt_id": another.prompt_id}
            session.execute(sa.insert(alias).values(**values))
            assert first.task_id != another.task_id
        with pytest.raises(AmbiguousError, match=r"'p0' is a prompt of 2 tasks\. Add a column task"):
            run(filled_file, "weights", "arithmetic", written(tmp_path / "w.csv", "prompt_id,weight\np0,1\n"))

    def test_an_unknown_benchmark_is_met_with_the_known_ones(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError, match="Did you mean 'arithmetic'"):
            run(filled_file, "weights", "arithmetics", written(tmp_path / "w.csv", "prompt_id,weight\np0,1\n"))

    def test_a_file_that_is_not_there_is_one_sentence(self, filled_file: sa.Engine, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="does not exist"):
            run(filled_file, "weights", "arithmetic", str(tmp_path / "none.csv"), "--no-mlflow")


class TestLeaderboard:
    @pytest.fixture
    def weighted(self, filled_file: sa.Engine, tmp_path: Path) -> sa.Engine:
        """A store with weights of half the prompts."""
        run(
            filled_file,
            "weights",
            "arithmetic",
            written(tmp_path / "w.csv", f"prompt_id,weight\n{HALF}"),
            "--no-mlflow",
        )
        return filled_file

    def test_the_summary_names_the_weights_and_what_is_left_out(self, weighted: sa.Engine) -> None:
        result = run(weighted, "leaderboard", "arithmetic", "--weights", "1")
        assert "over 15 prompts in 3 tasks (weighted: an effective number of 12.9)" in result.stderr
        assert "Prompts are weighted by 1:w." in result.stderr
        assert "20 of 40 prompts have no weight in 1:w and are left out." in result.stderr

    def test_json_and_csv_hold_the_effective_number_only_where_there_are_weights(self, weighted: sa.Engine) -> None:
        rows = json.loads(run(weighted, "leaderboard", "arithmetic", "--weights", "1", "--format", "json").stdout)
        values = np.array([i % 4 for i in range(20)], dtype=float)
        assert [row["n_effective"] for row in rows] == pytest.approx([values.sum() ** 2 / (values**2).sum()] * 5)
        assert "n_effective" not in json.loads(run(weighted, "leaderboard", "arithmetic", "--format", "json").stdout)[0]
