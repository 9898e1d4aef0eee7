"""`suffrage formats check` as a user gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracker.cli import suffrage
from tracker.errors import BadInputError


def check(path: Path, *options: str) -> Result:
    result = CliRunner().invoke(suffrage, ["formats", "check", str(path), *options])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


class TestCheck:
    def test_the_chosen_format_comes_first_and_the_others_have_reasons(self, tmp_path: Path) -> None:
        path = tmp_path / "scores.csv"
        path.write_text("prompt_id,model-a,model-b\nq1,1,0\n")
        printed = check(path, "--format", "json")
        rows = json.loads(printed.stdout)
        assert rows[0] == {"format": "wide-table", "match": "chosen", "similarity": 1.0, "reason": None}
        assert all(row["match"] == "no" and row["reason"] for row in rows[1:])
        similarities = [row["similarity"] for row in rows]
        assert similarities == sorted(similarities, reverse=True)
        assert printed.stderr == f"{path}: wide-table (a table with the columns prompt_id, model-a, model-b)\n"

    def test_the_nearest_format_comes_first_if_none_matches(self, tmp_path: Path) -> None:
        path = tmp_path / "half.json"
        path.write_text(json.dumps({"scores": {}, "mteb_version": "1", "dataset_revision": "r"}))
        printed = check(path, "--format", "json")
        assert json.loads(printed.stdout)[0]["format"] == "mteb"
        assert "no format matches; the nearest is mteb" in printed.stderr

    def test_what_is_no_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="does not exist"):
            check(tmp_path / "nowhere.json")
        with pytest.raises(BadInputError, match="is a folder"):
            check(tmp_path)
