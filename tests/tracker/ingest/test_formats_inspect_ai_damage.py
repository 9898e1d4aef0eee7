"""Logs of Inspect AI that are cut off or damaged, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from inspect_logs import read, scores, until_damage, write
from sound.inspect_ai import DEFLATED, STORED, ZSTD, archive, header, sample, start, whole

from tracker.errors import BadInputError
from tracker.ingest.formats import inspect_ai
from tracker.ingest.measurement import ReadOptions


class TestDamage:
    def test_a_log_without_head_is_of_an_evaluation_that_was_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        journal = {"_journal/summaries/2.json": [sample(1, value="I")], "_journal/summaries/10.json": [sample(2)]}
        path.write_bytes(archive({"_journal/start.json": start(), **journal}, ZSTD))
        reading = read(path)
        assert scores(reading) == {"match": {("1", 0): 0.0, ("2", 0): 1.0}}
        assert "interrupted" in reading.warnings[0]

    @pytest.mark.parametrize("method", [DEFLATED, ZSTD])
    def test_of_an_archive_that_breaks_off_the_journal_is_read(self, tmp_path: Path, method: int) -> None:
        members = {
            "_journal/start.json": start(),
            "samples/1_epoch_1.json": whole(sample(1)),
            "_journal/summaries/1.json": [sample(1), sample(2, value="I")],
            "samples/3_epoch_1.json": whole(sample(3)),
            "_journal/summaries/2.json": [sample(3)],
        }
        data = archive(members, method)
        path = tmp_path / "x.eval"
        path.write_bytes(data[: data.index(b"_journal/summaries/2.json") + 60])
        result, outcome = until_damage(path)
        assert scores(result) == {"match": {("1", 0): 1.0, ("2", 0): 0.0}}
        assert "truncated" in outcome
        assert "2 samples precede the damage" in outcome

    def test_of_a_json_log_that_breaks_off_the_samples_before_are_read(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.json", [sample(1), sample(2), sample(3)])
        data = path.read_bytes()
        path.write_bytes(data[: data.index(b'"id": 3') + 40])
        result, outcome = until_damage(path)
        assert scores(result) == {"match": {("1", 0): 1.0, ("2", 0): 1.0}}
        assert "truncated" in outcome

    def test_a_byte_that_changed_is_found(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        data = archive({"summaries.json": [sample(1), sample(2)], "header.json": header()}, STORED)
        path.write_bytes(data.replace(b'"value": "C"', b'"value": "I"', 1))
        result, outcome = until_damage(path)
        assert len(scores(result)["match"]) == 2
        assert "summaries.json: is damaged: its checksum differs" in outcome

    def test_a_damaged_head_gives_method_to_the_start_of_the_journal(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        members = {"_journal/start.json": start(), "summaries.json": [sample()], "header.json": b"{"}
        path.write_bytes(archive(members))
        result, outcome = until_damage(path)
        assert scores(result) == {"match": {("1", 0): 1.0}}
        assert "header.json in the archive is damaged" in outcome

    @pytest.mark.parametrize(
        ("name", "data", "words"),
        [
            ("x.eval", b"PK\x03\x04nonsense", "no member can be read"),
            ("x.eval", archive({"other.json": {}}), "neither header.json nor _journal/start.json"),
            ("x.eval", archive({"summaries.json": [3], "header.json": header()}), "sample 1 is not a sample"),
            ("x.eval", archive({"summaries.json": [{"epoch": 1}], "header.json": header()}), "sample 1 has no id"),
            ("x.eval", archive({"summaries.json": [sample(1, 0)], "header.json": header()}), "its epoch is '0'"),
            (
                "x.eval",
                archive({"summaries.json": {}, "header.json": header()}),
                "does not start with the expected bracket",
            ),
            ("x.eval", archive({"summaries.json": [], "header.json": []}), "is not a log header"),
            ("x.eval", archive({"header.json": header()}, 14), "unsupported compression method"),
            ("x.json", b'{"version": 2, "status": "success", "eval": {"model": "m', "truncated"),
            ("x.json", b'{"status": "success", "eval": {}, "samples": []} x', "extra data after its end"),
        ],
    )
    def test_what_cannot_be_read_is_refused_as_text(self, tmp_path: Path, name: str, data: bytes, words: str) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(BadInputError, match=words):
            list(inspect_ai.read(path, ReadOptions()))

    def test_an_encrypted_archive_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "x.eval"
        data = bytearray(archive({"header.json": header()}))
        data[6] |= 1
        data[data.index(b"PK\x01\x02") + 8] |= 1
        path.write_bytes(data)
        with pytest.raises(BadInputError, match="is encrypted"):
            list(inspect_ai.read(path, ReadOptions()))


class TestDeclines:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("x.eval", b"not a zip"),
            ("x.zip", archive({"header.json": header()})),
            ("x.json", b'{"results": {"version": 3}}'),
            ("x.json", b'{"status": "done", "eval": {}}'),
            ("x.jsonl", b'{"status": "success", "eval": {}}'),
        ],
    )
    def test_what_is_no_log(self, tmp_path: Path, name: str, data: bytes) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        assert inspect_ai.mismatch_reason(path, ReadOptions())
