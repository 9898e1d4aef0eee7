"""Damaged files: what could be read of them is said, stored only where that is asked for, and mended later."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measurement_blocks import all_rows, prompts, scores, store_blocks, stored_contents

from tracker.cli import suffrage
from tracker.database import connect, transaction
from tracker.errors import BadInputError
from tracker.ingest.formats.lm_eval import samples as stream
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums

OPTIONS = ReadOptions(model="m", benchmark="b")
NAME = "samples_t_2026-01-02T03-04-05.jsonl"


def sample(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "doc_id": number,
        "doc": {"question": f"Why {number}?"},
        "target": "1",
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": []}}},
        "filtered_resps": [f"said {number}"],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"hash{number // 2}",
        "acc": float(number % 3 == 0),
        **changes,
    }


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / NAME
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def statuses(engine: sa.Engine) -> list[str]:
    with engine.connect() as connection:
        return [status for (status,) in connection.execute(sa.text("SELECT status FROM run ORDER BY id"))]


def contents(engine: sa.Engine) -> dict[str, Any]:
    with transaction(engine, write=False) as session:
        assert verify_checksums(session) == []
        return stored_contents(session)


class TestRefused:
    def test_the_error_counts_what_could_be_read_and_nothing_is_stored(self, store: sa.Engine, tmp_path: Path) -> None:
        path = written(tmp_path, *map(sample, range(4)))
        path.write_bytes(path.read_bytes()[:-30])
        before = all_rows(store)
        with pytest.raises(BadInputError) as refused:
            ingest_file(store, path, OPTIONS)
        message = str(refused.value)
        assert "line 4: the JSON is invalid or truncated" in message
        assert "What could be read: 3 prompts, 3 scores, 3 answers\n" in message
        assert "m (2026-01-02T03-04-05), acc: mean 0.333333 of 3" in message
        assert "Nothing was stored. Add --partial to store this part." in message
        assert all_rows(store) == before

    def test_of_many_wrong_lines_ten_are_shown_with_the_count(self, store: sa.Engine, tmp_path: Path) -> None:
        path = written(tmp_path, sample(0), *(sample(number, acc="good") for number in range(1, 15)))
        with pytest.raises(BadInputError, match=r"(?s)14 problems.*line 11: acc is 'good'.*and 4 more"):
            ingest_file(store, path, OPTIONS)

    def test_where_nothing_could_be_read_nothing_is_promised(self, store: sa.Engine, tmp_path: Path) -> None:
        path = written(tmp_path, sample(0))
        path.write_bytes(path.read_bytes()[:-30])
        for partial in (False, True):
            with pytest.raises(BadInputError) as refused:
                ingest_file(store, path, OPTIONS, partial=partial)
            assert "--partial" not in str(refused.value)


class TestStored:
    def test_what_is_sound_is_stored_and_its_runs_are_partial(self, store: sa.Engine, tmp_path: Path) -> None:
        path = written(tmp_path, sample(0), sample(1, acc="good"), sample(2))
        result = ingest_file(store, path, OPTIONS, partial=True)
        assert (result.changes.n_scores, result.changes.n_runs_partial, statuses(store)) == (2, 1, ["partial"])
        assert "line 2: acc is 'good', not a number" in result.changes.damage
        again = ingest_file(store, path, OPTIONS, partial=True)
        assert again.changes.already_known
        assert statuses(store) == ["partial"]

    def test_a_sound_file_is_stored_as_without_the_option(self, store: sa.Engine, tmp_path: Path) -> None:
        path = written(tmp_path, *map(sample, range(3)))
        result = ingest_file(store, path, OPTIONS, partial=True)
        assert (result.changes.damage, statuses(store)) == ("", ["complete"])
        assert ingest_file(store, path, OPTIONS).changes.already_known

    @settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(share=st.floats(0.2, 0.99), size=st.integers(1, 4))
    def test_the_mended_file_makes_of_any_part_what_the_whole_file_makes(
        self, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, size: int
    ) -> None:
        monkeypatch.setattr(stream, "PROMPTS_PER_BLOCK", size)
        outcomes = []
        for parts in ((share, 1.0), (1.0,)):
            url = f"sqlite:///{tmp_path}/store.db"
            (tmp_path / "store.db").write_bytes(sqlite_template.read_bytes())
            engine = connect(url)
            path = written(tmp_path, *map(sample, range(9)))
            whole = path.read_bytes()
            for part in parts:
                path.write_bytes(whole[: int(len(whole) * part)])
                ingest_file(engine, path, OPTIONS, partial=part < 1.0)
            assert statuses(engine) == ["complete"]
            outcomes.append(contents(engine))
            engine.dispose()
        assert outcomes[0] == outcomes[1]

    def test_a_file_that_lacks_what_is_stored_leaves_the_run_partial(self, store: sa.Engine, tmp_path: Path) -> None:
        ingest_file(store, written(tmp_path, sample(0), sample(2), sample(4, acc="good")), OPTIONS, partial=True)
        assert len(ingest_file(store, written(tmp_path, sample(0), sample(6)), OPTIONS).changes.runs_extended) == 1
        assert statuses(store) == ["partial"]
        ingest_file(store, written(tmp_path, *map(sample, (0, 2, 4, 6))), OPTIONS)
        assert statuses(store) == ["complete"]

    def test_a_complete_run_stays_complete(self, store: sa.Engine, tmp_path: Path) -> None:
        ingest_file(store, written(tmp_path, sample(0), sample(2)), OPTIONS)
        ingest_file(store, written(tmp_path, sample(0), sample(4), sample(6, acc="good")), OPTIONS, partial=True)
        assert statuses(store) == ["complete"]


class TestLeftOut:
    def test_scores_out_of_bounds_and_contradictions_are_left_out_and_counted(self, store: sa.Engine) -> None:
        of = prompts([("t", "q1"), ("t", "q2"), ("t", "q3"), ("t", "q3")])
        message = store_blocks(store, scores({"a": 1, "b": 7, "c": 0, "d": 1}, of=of), partial=True)
        assert (message.n_scores, message.n_runs_partial) == (1, 1)
        assert "2 values were skipped" in message.damage
        assert "prompt 'q2': 7 is outside [0, 1]" in message.damage
        assert "prompt 'q3' has the score 0" in message.damage

    def test_prompts_that_contradict_the_stored_are_left_out_and_counted(self, store: sa.Engine) -> None:
        store_blocks(store, prompts([("t", "q1"), ("t", "q2")], text=["one?", "two?"]))
        of = prompts([("t", "q1"), ("t", "q2")], text=["one?", "another?"])
        message = store_blocks(store, scores({"a": 1, "b": 1}, of=of), partial=True)
        assert message.n_scores == 1
        assert re.search(r"(?s)1 prompts were skipped:.*'q2': its text contradicts", message.damage)


class TestCommand:
    def test_it_reports_what_was_stored_and_the_status_of_the_run(self, sqlite_url: str, tmp_path: Path) -> None:
        path = written(tmp_path, sample(0), sample(2), sample(4, acc="good"))
        words = ["ingest", str(path), "--model", "m", "--benchmark", "b", "--no-mlflow", "--database", sqlite_url]
        refused = CliRunner().invoke(suffrage, words)
        assert refused.exit_code == 1
        assert "What could be read: 3 prompts, 2 scores, 3 answers" in refused.stderr
        stored = CliRunner().invoke(suffrage, [*words, "--partial"])
        assert stored.exit_code == 0, stored.stderr
        assert "line 3: acc is 'good'" in stored.stderr
        assert "partial: rankings use them only with --runs" in stored.stderr
        output = CliRunner().invoke(suffrage, ["leaderboard", "b", "--database", sqlite_url])
        assert output.exit_code != 0
