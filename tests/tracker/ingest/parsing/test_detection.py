"""Formats of ours and of others, and the files they recognise."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tracker.errors import BadInputError, NotFoundError, UnknownFormatError
from tracker.ingest.files.file_summary import describe_file
from tracker.ingest.format_registry import GROUP, load_formats
from tracker.ingest.measurement import ReadOptions, Scores
from tracker.ingest.parsing.detection import find_files, parse_file
from tracker.ingest.parsing.recognition import rank_mismatches

WIDE = "prompt_id,A\nq1,1\nq2,0\n"
PROMPTS = "prompt_id,question\nq1,Why?\n"

PLUGIN = '''
"""Lines of key=score."""
import numpy as np
from tracker.ingest.measurement import MetricDescription, Prompts, RunDescription, Scores

def mismatch_reason(path, options):
    return None if path.suffix == ".scores" else "the name does not end in .scores"

def read(path, options):
    pairs = [line.split("=") for line in path.read_text().splitlines()]
    yield "read by a plug-in"
    yield Scores(
        run=RunDescription(model="outside"),
        metric=MetricDescription(name="score"),
        prompts=Prompts(keys=[key for key, _ in pairs]),
        values=np.array([float(value) for _, value in pairs]),
    )
'''


class TestFormats:
    def test_built_in_formats_are_discovered_and_described(self) -> None:
        assert {"wide-table", "long-table", "leaderboard-table", "prompt-table", "lm-eval"} <= set(load_formats())
        for module in load_formats().values():
            assert (module.__doc__ or "").split("\n")[0].endswith(".")

    def test_a_module_installed_from_outside_is_a_format(self, install, tmp_path: Path) -> None:
        install("plain_scores", PLUGIN, group=GROUP)
        assert "plain-scores" in load_formats()
        path = tmp_path / "mine.scores"
        path.write_text("q1=1\nq2=0\n")
        reading = parse_file(path, ReadOptions())
        assert (reading.format, list(reading.warnings)) == ("plain-scores", ["read by a plug-in"])
        assert isinstance(reading.measurements[0], Scores)

    def test_every_module_of_a_package_is_one_and_a_broken_one_costs_only_itself(self, install) -> None:
        modules = {
            "good_one": PLUGIN,
            "broken": "raise RuntimeError('no such library')",
            "nothing": "x = 1",
        }
        install("many_formats", modules, group=GROUP)
        with pytest.warns(UserWarning, match="many_formats") as caught:
            formats_found = load_formats()
        messages = " ".join(str(warning.message) for warning in caught)
        assert "many_formats.broken" in messages
        assert "no such library" in messages
        assert "many_formats.nothing is not a format" in messages
        assert {"good-one", "wide-table"} <= set(formats_found)
        assert "broken" not in formats_found

    def test_a_number_of_thousands_of_digits_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "long.json").write_text(f'{{"accuracy": {"9" * 5_000}}}')
        with pytest.raises(BadInputError, match=r"long\.json: is not valid JSON: Exceeds the limit \(4300 digits\)"):
            parse_file(tmp_path / "long.json", ReadOptions())

    def test_where_two_formats_recognise_a_file_the_more_specific_has_it(self, install, tmp_path: Path) -> None:
        modules = {
            "plain_ones": PLUGIN,
            "other_ones": PLUGIN,
            "special_ones": PLUGIN.replace('".scores"', '".special"') + "\nSPECIFICITY = 1\n",
            "special_too": PLUGIN.replace('".scores"', '".special"'),
        }
        install("rivals", modules, group=GROUP)
        for name in ("x.scores", "x.special"):
            (tmp_path / name).write_text("q1=1\n")
        assert parse_file(tmp_path / "x.special", ReadOptions()).format == "special-ones"
        with pytest.raises(
            UnknownFormatError, match=r"several formats: other-ones, plain-ones\.\nChoose with --format"
        ):
            parse_file(tmp_path / "x.scores", ReadOptions())
        assert parse_file(tmp_path / "x.scores", ReadOptions(), format="other-ones").format == "other-ones"


class TestSplits:
    def test_a_format_that_reads_files_whole_rejects_a_choice_of_splits(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        path.write_text("{}")
        options = ReadOptions(benchmark="b", splits=("test",))
        with pytest.raises(BadInputError, match=r"--split does not apply to files of the format evalplus") as caught:
            parse_file(path, options, format="evalplus")
        assert "Omit --split; it applies to every-eval-ever, helm, leaderboard-table" in str(caught.value)
        with pytest.raises(BadInputError, match="--map does not apply to files of the format evalplus"):
            parse_file(path, ReadOptions(columns={"model": "x"}), format="evalplus")

    def test_a_table_is_reduced_to_the_chosen_splits(self, tmp_path: Path) -> None:
        path = tmp_path / "long.csv"
        path.write_text("model,prompt_id,split,score\nm,p,train,1\nm,q,test,0\n")
        (block,) = parse_file(path, ReadOptions(benchmark="b", splits=("test",))).measurements
        assert block.prompts.keys == ["q"]


class TestFind:
    def test_folders_are_searched_prompts_come_first_and_the_rest_is_reported(self, tmp_path: Path) -> None:
        folder = tmp_path / "results"
        (folder / "deep" / ".hidden").mkdir(parents=True)
        for name in ("a.csv", "deep/c.csv", "deep/.hidden/d.csv", ".e.csv"):
            (folder / name).write_text(WIDE)
        (folder / "z_prompts.csv").write_text(PROMPTS)
        (folder / "notes.md").write_text("# notes")
        skipped: dict[Path, str] = {}
        formats_found = find_files([folder], skipped=skipped.__setitem__)
        assert [path.relative_to(folder).as_posix() for path in formats_found] == [
            "z_prompts.csv",
            "a.csv",
            "deep/c.csv",
        ]
        assert list(skipped) == [folder / "notes.md"]
        assert skipped[folder / "notes.md"] == "text that starts with '# notes'"

    def test_a_file_that_breaks_off_is_not_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text(WIDE)
        (tmp_path / "b.csv").write_text("")
        (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
        (tmp_path / "d.csv").write_text(WIDE, encoding="utf-16")
        assert [path.name for path in find_files([tmp_path])] == ["a.csv", "b.csv", "c.parquet", "d.csv"]

    def test_packed_scores_beside_a_store_are_passed_over(self, tmp_path: Path) -> None:
        for folder in ("results.db.packed/1-1-full-0", "packed", "a.packed"):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "a.csv").write_text(WIDE)
        names = [path.relative_to(tmp_path).as_posix() for path in find_files([tmp_path])]
        assert names == ["a.packed/a.csv", "packed/a.csv"]

    def test_a_file_that_is_named_is_kept_whatever_it_is(self, tmp_path: Path) -> None:
        (tmp_path / "notes.md").write_text("# notes")
        assert find_files([tmp_path / "notes.md", tmp_path / "notes.md"]) == [tmp_path / "notes.md"]

    def test_what_belongs_to_another_file_is_read_with_it(self, tmp_path: Path) -> None:
        stamp = "2026-01-02T03-04-05"
        results, samples = tmp_path / f"results_{stamp}.json", tmp_path / f"samples_t_{stamp}.jsonl"
        results.write_text('{"results": {}}')
        samples.write_text('{"doc_id": 0}\n')
        assert find_files([tmp_path]) == find_files([samples, results]) == find_files([results]) == [results]
        assert find_files([samples]) == [samples]

    def test_a_single_format_may_be_requested(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text(WIDE)
        (tmp_path / "b.csv").write_text(PROMPTS)
        assert find_files([tmp_path], format="prompt-table") == [tmp_path / "b.csv"]
        with pytest.raises(NotFoundError, match="Did you mean 'wide-table'"):
            find_files([tmp_path], format="wide-tabel")

    def test_a_folder_without_results_is_an_error_with_an_example(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        with pytest.raises(BadInputError, match="holds no files"):
            find_files([tmp_path / "empty"])
        (tmp_path / "notes.md").write_text("# notes")
        with pytest.raises(BadInputError, match=r"its only file matches no format\.\nnotes.md is text"):
            find_files([tmp_path])
        with pytest.raises(BadInputError, match="does not exist"):
            find_files([tmp_path / "nowhere"])


class TestNearestFormat:
    @pytest.mark.parametrize(
        ("name", "text", "nearest"),
        [
            ("a.csv", "model,question,task\nm,Why?,t\n", "long-table (no column score, predicted or gold_probability)"),
            ("a.csv", "task,score\nt,0.5\nt,0.7\n", "task-score-table (no column model)"),
            ("a.csv", "prompt_id,A\nq1,x\nq2,y\n", "wide-table (no column holds numbers"),
            ("a.jsonl", '{"model": "m", "prompt_id": 1, "mood": 2}\n', "long-table (no field score, predicted or"),
            ("samples_t_2026-01-02T03-04-05.jsonl", '{"id": 1}', "lm-eval (the first line does not start with"),
            ("x_eval_results.json", '{"pass": {}}', "evalplus (it does not start with"),
        ],
    )
    def test_the_error_names_the_format_that_shares_most_features(
        self, tmp_path: Path, name: str, text: str, nearest: str
    ) -> None:
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(UnknownFormatError) as caught:
            parse_file(path, ReadOptions())
        lines = str(caught.value).splitlines()
        assert len(lines) == 3
        assert lines[1].startswith(f"Nearest format: {nearest}")
        assert "--format NAME" in lines[2]

    def test_every_other_format_is_ranked_with_its_reason(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text("model,question,topic\nm,Why?,t\n")
        ranked = rank_mismatches(path, ReadOptions(), load_formats())
        assert {mismatch.format for mismatch in ranked} == set(load_formats())
        assert ranked[0].format == "long-table"
        similarities = [mismatch.similarity for mismatch in ranked]
        assert similarities == sorted(similarities, reverse=True)
        assert similarities[0] < 1
        assert all(mismatch.reason for mismatch in ranked)

    @pytest.mark.parametrize(
        ("name", "data", "description"),
        [
            ("a.csv", b"a,b,c,d,e,f,g\n1,2,3,4,5,6,7\n", "a table with the columns a, b, c, d, e and 2 more"),
            ("a.json", b'{"a": {"b": [1]}, "c": "x\\"d\\":"}', "JSON with the keys a, c"),
            ("a.json", b'[{"a": 1, "b": {"c": 2}}, {"d": 3}]', "a JSON list with the keys a, b"),
            ("a.jsonl", b'{"a": 1}\n{"b": 2}\n', "JSON with the keys a"),
            ("a.json", b"[1, 2]", "a JSON list"),
            ("a.txt", b"Hello\nworld", "text that starts with 'Hello'"),
            ("a.zip", b"PK\x03\x04rest", "a zip archive"),
            ("a.png", b"\x89PNG\r\n", "a binary file"),
            ("a.txt", b"", "an empty file"),
        ],
    )
    def test_a_file_is_described_by_its_first_columns_or_keys(
        self, tmp_path: Path, name: str, data: bytes, description: str
    ) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        assert describe_file(path) == description


class TestPrepare:
    def test_digest_is_that_of_the_bytes_and_identity_that_of_how_they_are_read(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "a.csv", tmp_path / "b.csv"
        path.write_text(WIDE)
        copy.write_text(WIDE)
        first, second = parse_file(path, ReadOptions()), parse_file(path, ReadOptions(metric="accuracy"))
        assert first.digest == second.digest == hashlib.sha256(WIDE.encode()).hexdigest()
        assert first.identity != second.identity
        assert first.identity == parse_file(copy, ReadOptions()).identity
        assert first.identity == parse_file(path, ReadOptions(), format="wide-table").identity

    def test_progress_ends_at_the_size_of_all_files(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text(WIDE)
        reported: list[tuple[int, int]] = []
        parse_file(path, ReadOptions(), progress=lambda done, total: reported.append((done, total)))
        assert reported[-1] == (len(WIDE), len(WIDE))

    def test_what_cannot_be_read_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInputError, match="is a folder"):
            parse_file(tmp_path, ReadOptions())
        with pytest.raises(BadInputError, match="does not exist"):
            parse_file(tmp_path / "nowhere.csv", ReadOptions())
        (tmp_path / "excel.csv").write_text(WIDE, encoding="utf-16")
        with pytest.raises(BadInputError, match=r"excel.csv: is UTF-16 text; save it as UTF-8.$"):
            parse_file(tmp_path / "excel.csv", ReadOptions())
        (tmp_path / "empty.csv").touch()
        with pytest.raises(BadInputError, match="is empty"):
            parse_file(tmp_path / "empty.csv", ReadOptions())

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_that_may_not_be_opened_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text(WIDE)
        path.chmod(0)
        with pytest.raises(BadInputError, match="cannot be opened"):
            parse_file(path, ReadOptions())
