"""Names, texts and addresses on their way to MLflow."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param_name

from tracker.recording.mlflow.run_spec import (
    MAX_NAME_LENGTH,
    MlflowRunSpec,
    allowed_names,
    ascii_name,
    build_names_file,
    format_parameter,
    truncate,
)
from tracker.recording.mlflow.tracking_store import hide_passwords


class TestNames:
    @given(st.lists(st.text(max_size=300)))
    def test_every_name_has_one_of_its_own_that_mlflow_takes(self, names: list[str]) -> None:
        allowed = allowed_names(names)
        assert set(allowed) == set(names)
        assert len(set(allowed.values())) == len(set(names))
        for displayed in allowed.values():
            assert len(displayed) <= MAX_NAME_LENGTH
            assert displayed.isascii()
            _validate_metric_name(displayed)
            _validate_param_name(displayed)

    @given(st.lists(st.from_regex(r"[a-z0-9_\- :]+(\.[a-z]+)?(/[a-z]+)?", fullmatch=True)))
    def test_names_that_mlflow_takes_stay_as_they_are(self, names: list[str]) -> None:
        assert allowed_names(names) == {name: name for name in names}
        assert build_names_file(allowed_names(names)) == {}

    def test_changed_names_can_be_turned_back(self) -> None:
        allowed = allowed_names(["acc,none", "acc_none", "mean"])
        assert allowed == {"acc,none": "acc_none", "acc_none": "acc_none_2", "mean": "mean"}
        assert json.loads(build_names_file(allowed)["names.json"]) == {"acc_none": "acc,none", "acc_none_2": "acc_none"}


class TestTexts:
    @given(st.text(), st.integers(100, 200))
    def test_a_truncated_text_shows_its_full_length(self, text: str, longest: int) -> None:
        displayed = truncate(text, longest)
        assert len(displayed) <= longest
        assert displayed == text or f"({len(text):,} characters; the store has them all)" in displayed

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("a", "a"),
            (["a", "b"], "a, b"),
            ([1, [2]], "[1, [2]]"),
            (None, "null"),
            (True, "true"),
            ({"é": 1}, '{"é": 1}'),
        ],
    )
    def test_parameters_read_as_people_wrote_them(self, value: object, text: str) -> None:
        assert format_parameter(value) == text

    def test_names_of_runs_are_ascii(self) -> None:
        assert ascii_name("modèle · 7b") == "mod?le ? 7b"


class TestPasswords:
    @pytest.mark.parametrize(
        ("uri", "displayed"),
        [
            ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
            ("https://me:secret@host/path", "https://me:***@host/path"),
            ("postgresql://me:se:cr@et@host:5432/db", "postgresql://me:***@host:5432/db"),
            ("postgresql://host/db?user=me&password=secret", "postgresql://host/db?user=me&password=***"),
            ("https://host/?access_token=secret", "https://host/?access_token=***"),
            ("http://me:secret@[::1/", "http://***@[::1/"),
            ("databricks", "databricks"),
        ],
    )
    def test_no_password_is_shown(self, uri: str, displayed: str) -> None:
        assert hide_passwords(uri) == displayed
        assert "secret" not in hide_passwords(uri)


def test_a_spec_survives_json() -> None:
    spec = MlflowRunSpec(
        kind="run", ref_id=7, version="2-a", experiment="e", about_experiment="", run_name="München",
        started=datetime(2024, 5, 1, 12, 30, 1, 5), ended=datetime(2024, 5, 1, 13, tzinfo=UTC),
        parameters={"a": "b"}, metrics={"acc": 0.1 + 0.2}, tags={}, description="", files={"x.bin": b"\x00\xff"},
    )  # fmt: skip
    assert MlflowRunSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec
