"""What every format promises, held against files that were broken on purpose."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracker.errors import BadInputError
from tracker.ingest.discovery import formats
from tracker.ingest.measurement import Answers, Prompts, ReadOptions, Scores, TaskScores

STAMP = "2026-01-02T03-04-05"
SAMPLE = {
    "doc_id": 0,
    "doc": {"question": "Why?", "choices": ["a", "b"]},
    "target": "1",
    "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": " a"}, "gen_args_1": {"arg_0": "Q", "arg_1": " b"}},
    "resps": [[["-1.0", "False"]], [["-2.0", "False"]]],
    "filtered_resps": [["-1.0", "False"], ["-2.0", "False"]],
    "filter": "none",
    "metrics": ["acc"],
    "acc": 1.0,
}
RESULTS = {
    "results": {"t": {"acc,none": 1.0}, "u": {"acc,none": 0.5, "acc_stderr,none": 0.1}},
    "group_subtasks": {"g": ["t", "u"]},
    "configs": {"t": {"test_split": "test"}},
    "n-shot": {"t": 0, "u": 0},
    "n-samples": {"u": {"original": 3, "effective": 3}},
    "config": {"model_args": "pretrained=org/model", "limit": None},
    "date": 1767323045.5,
}
LONG = (
    b"model,id,task,text,choices,gold,metric,score,predicted,gold_probability,condition,trial\n"
    b'A,1,t,Why?,"[""a"", ""b""]",B,acc,1,B,0.5,full,0\nB,1,t,Why?,"[""a"", ""b""]",B,acc,0,A,0.25,answer_only,1\n'
)


def _parquet(columns: dict[str, list[object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


# Sound files of every kind, by name; all formats are held against all of them.
SOUND = {
    "wide.csv": b'prompt_id,"org/A",B\n1,1,0\n2,,0.5\n',
    "wide.parquet": _parquet({"prompt_id": [1, 2], "A": [1.0, None], "B": [0, 1]}),
    "long.csv": LONG,
    "long.csv.gz": gzip.compress(LONG, mtime=0),
    "leaderboard.csv": b"model,ARC,MMLU\nA,1,2\nB,3,\n",
    "task_scores.csv": b"model,task,score,stderr,n\nA,x,1,0.1,5\nB,x,0,,\n",
    "prompts.parquet": _parquet({"id": [1, 2], "text": ["Why?", "How?"], "choices": [["a", "b"], None]}),
    f"results_{STAMP}.json": json.dumps(RESULTS, indent=2).encode(),
    f"samples_t_{STAMP}.jsonl": (json.dumps(SAMPLE) + "\n" + json.dumps({**SAMPLE, "doc_id": 1}) + "\n").encode(),
}
OPTIONS = (
    ReadOptions(probability_kind="letters"),
    ReadOptions(probability_kind="letters", model="x", orient="models"),
    ReadOptions(probability_kind="likelihoods", model="x", values="predictions"),
)
FORMATS = [pytest.param(module, id=name) for name, module in formats().items()]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A file with some bytes changed, cut, doubled or moved."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        start = chance.randrange(len(changed) + 1)
        stop = min(len(changed), start + chance.choice((1, 2, 8, 64)))
        kind = chance.randrange(5)
        if kind == 0:
            changed[start:stop] = bytes(chance.randrange(256) for _ in range(stop - start))
        elif kind == 1:
            del changed[start:stop]
        elif kind == 2:
            changed[start:start] = changed[start:stop]
        elif kind == 3:
            words = (
                b",",
                b'"',
                b"\n",
                b"nan",
                b"-1",
                b"1e999",
                b"null",
                b"[]",
                b"{}",
                b"[[1]]",
                b"\0",
                b"\xff",
                b"true",
            )
            changed[start:stop] = chance.choice(words)
        else:
            changed = changed[: start + 1]
    return bytes(changed)


def hold_to_promise(module: ModuleType, folder: Path, n_mutations: int) -> None:
    """Read mutated files; anything but blocks, notes and BadInputError fails."""
    chance = random.Random(module.__name__)
    for _ in range(n_mutations):
        name, data = chance.choice(list(SOUND.items()))
        for sound, whole in SOUND.items():
            (folder / sound).write_bytes(whole)
        path = folder / name
        path.write_bytes(mutated(data, chance))
        options = chance.choice(OPTIONS)
        reason = module.declines(path, options)
        assert reason is None or isinstance(reason, str)
        refused = ""
        try:
            blocks = list(module.read(path, options))
        except BadInputError as error:
            refused, blocks = str(error), []
        assert not refused or str(folder) in refused
        for block in blocks:
            assert isinstance(block, (Prompts, Scores, Answers, TaskScores, str))
            if isinstance(block, Scores):
                assert len(block.values) == len(block.prompts)
            if isinstance(block, Answers):
                assert len(block.text) == len(block.prompts)


@pytest.mark.parametrize("module", FORMATS)
def test_every_format_refuses_broken_files_in_words(module: ModuleType, tmp_path: Path) -> None:
    hold_to_promise(module, tmp_path, 50)


@pytest.mark.soak
@pytest.mark.parametrize("module", FORMATS)
def test_every_format_refuses_thousands_of_broken_files_in_words(module: ModuleType, tmp_path: Path) -> None:
    hold_to_promise(module, tmp_path, 2000)


@pytest.mark.parametrize("module", FORMATS)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), name=st.sampled_from([*SOUND, "x.tsv", "x.pq", "x", "x.json", "results.json"]))
def test_every_format_says_of_any_bytes_whether_they_are_its_own(
    module: ModuleType, tmp_path: Path, data: bytes, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for options in OPTIONS:
        reason = module.declines(path, options)
        assert reason is None or (isinstance(reason, str) and reason)


@pytest.mark.parametrize("module", FORMATS)
def test_every_format_reads_some_sound_file(module: ModuleType, tmp_path: Path) -> None:
    for name, data in SOUND.items():
        (tmp_path / name).write_bytes(data)
    options = ReadOptions(probability_kind="letters")
    own = [tmp_path / name for name in SOUND if module.declines(tmp_path / name, options) is None]
    assert own
    for path in own:
        assert any(not isinstance(block, str) for block in module.read(path, options))


@pytest.mark.parametrize("module", FORMATS)
def test_every_format_declines_folders_and_files_that_are_not_there(module: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for path in (tmp_path, tmp_path / "folder.csv", tmp_path / "nowhere.csv", tmp_path / "nowhere.jsonl"):
        assert module.declines(path, ReadOptions())
