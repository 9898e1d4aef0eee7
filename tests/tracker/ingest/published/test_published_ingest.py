"""Published data sets in the store: once, in the drawn splits, the same prompts as others mean."""

from __future__ import annotations

import json
import math
import shutil
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from published_files import (
    anli_hub,
    anli_lines,
    hellaswag,
    ingest_prompts,
    json_lines,
    stem_and_options,
    stored_prompts,
)

from tracker.errors import BadInputError, ConflictError, MissingExtraError, NotFoundError, SelectionError
from tracker.ingest.datasets import hub
from tracker.ingest.datasets.prompt_sampling import count_drawn, find_last_hash
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.pipeline import ingest_file


def splits(engine: sa.Engine, benchmark: str) -> dict[str, str | None]:
    return {row["key"]: row["split"] for row in stored_prompts(engine, benchmark)}


def harness_log(folder: Path, task: str, rows: list[dict[str, Any]], options: list[str]) -> Path:
    """Samples of lm-evaluation-harness about published rows, the first option likelier than the others."""
    stamp = "2026-01-02T03-04-05.678901"
    logged = [
        {
            "doc_id": n, "doc": doc, "target": "0", "doc_hash": f"hash{n}", "filter": "none", "metrics": ["acc"],
            "acc": 1.0,
            "arguments": {f"gen_args_{k}": {"arg_0": "Q:", "arg_1": f" {item}"} for k, item in enumerate(options)},
            "filtered_resps": [[f"-{k + 1}.0", "False"] for k in range(len(options))],
        }
        for n, doc in enumerate(rows)
    ]  # fmt: skip
    results = {"results": {task: {"acc,none": 1.0}}, "model_name": "org/model", "config": {"model": "hf"}}
    json_lines(folder / f"samples_{task}_{stamp}.jsonl", logged)
    (folder / f"results_{stamp}.json").write_text(json.dumps(results))
    return folder / f"samples_{task}_{stamp}.jsonl"


class TestStore:
    def test_the_same_again_changes_nothing_on_either_engine(self, store: sa.Engine, tmp_path: Path) -> None:
        file = json_lines(tmp_path / "anli" / "R1" / "test.jsonl", anli_lines("a"))
        first = ingest_prompts(store, "anli", file)
        before = stored_prompts(store, "anli")
        again = ingest_prompts(store, "anli", file)
        assert (first.changes.n_prompts_new, again.changes.n_prompts_new) == (3, 0)
        assert again.changes.already_known
        shutil.copytree(tmp_path / "anli", tmp_path / "copy")
        json_lines(tmp_path / "copy" / "R1" / "dev.jsonl", anli_lines("b"))
        assert ingest_prompts(store, "anli", tmp_path / "copy").changes.n_prompts_new == 3
        assert stored_prompts(store, "anli")[:3] == before

    def test_a_dry_run_stores_nothing(self, engine: sa.Engine, tmp_path: Path) -> None:
        file = json_lines(tmp_path / "hellaswag_val.jsonl", hellaswag("val"))
        result = ingest_prompts(engine, "hellaswag", file, dry_run=True)
        assert result.summary() == "hellaswag: 4 prompts (validation 4); would be 4 new prompts"
        assert stored_prompts(engine, "hellaswag") == []

    def test_scores_of_a_harness_ingested_later_are_of_the_same_prompts(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        rows = [dict(row) for row in anli_hub("a")]
        ingest_prompts(engine, "anli", json_lines(tmp_path / "test_r1.jsonl", rows), task_names={"R1": "anli_r1"})
        log = harness_log(tmp_path / "out", "anli_r1", rows[:1], ["True", "Neither", "False"])
        stored = ingest_file(engine, log, ReadOptions(benchmark="anli")).changes
        assert stored.n_prompts_new == 0
        names = {(row["prompt_id"], row["namespace"]) for row in stored_prompts(engine, "anli")}
        assert names == {(1, ""), (2, ""), (3, ""), (1, "lm_eval")}

    def test_scores_of_a_harness_ingested_before_are_of_the_same_prompts(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        requested = [stem_and_options(n, "A") for n in range(3)]
        docs = [
            {"question": row["question"]["stem"], "choices": {"text": [o["text"] for o in row["question"]["choices"]]}}
            for row in requested
        ]
        log = harness_log(tmp_path / "out", "commonsense_qa", docs, list("ABCDE"))
        ingest_file(engine, log, ReadOptions(benchmark="csqa"))
        outcome = ingest_prompts(engine, "csqa", json_lines(tmp_path / "dev.jsonl", requested), preset="commonsense_qa")
        assert outcome.changes.n_prompts_new == 0
        result = stored_prompts(engine, "csqa")
        assert len({row["prompt_id"] for row in result}) == 3
        assert {row["split"] for row in result} == {"dev"}

    def test_a_table_of_scores_may_use_the_data_set_s_own_names(self, engine: sa.Engine, tmp_path: Path) -> None:
        requested = [stem_and_options(n, "A") for n in range(3)]
        ingest_prompts(engine, "commonsense_qa", json_lines(tmp_path / "dev.jsonl", requested))
        table = tmp_path / "scores.csv"
        table.write_text("prompt_id,model-a,model-b\nq0,1,0\nq1,0,1\n")
        stored = ingest_file(engine, table, ReadOptions(benchmark="commonsense_qa", metric="accuracy")).changes
        assert (stored.n_scores, stored.n_prompts_new) == (4, 0)

    def test_a_gold_answer_that_contradicts_the_stored_one_stops_unless_it_is_reported_which_counts(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        ingest_prompts(engine, "csqa", json_lines(tmp_path / "a.jsonl", [stem_and_options(0, "A")]),
                        preset="commonsense_qa")  # fmt: skip
        second = json_lines(tmp_path / "b.jsonl", [stem_and_options(0, "B")])
        with pytest.raises(BadInputError, match="its reference answer 'B' contradicts the stored one, 'A'"):
            ingest_prompts(engine, "csqa", second, preset="commonsense_qa")
        ingest_prompts(engine, "csqa", second, preset="commonsense_qa", on_conflict="update")
        assert stored_prompts(engine, "csqa")[0]["answer"] == "B"


class TestSplits:
    def test_of_several_splits_those_requested_for_are_ingested(self, engine: sa.Engine, tmp_path: Path) -> None:
        for split in ("train", "val", "test"):
            json_lines(tmp_path / f"hellaswag_{split}.jsonl", hellaswag(split))
        result = ingest_prompts(engine, "hellaswag", tmp_path, splits=["val"])
        assert result.counts == {("validation", ""): 4}
        with pytest.raises(NotFoundError, match=r"No split 'dev'\. Known: test, train, validation"):
            ingest_prompts(engine, "hellaswag", tmp_path, splits=["dev"])

    def test_tasks_can_be_labelled_as_a_harness_does(self, engine: sa.Engine, tmp_path: Path) -> None:
        json_lines(tmp_path / "anli" / "R1" / "test.jsonl", anli_lines("a"))
        json_lines(tmp_path / "anli" / "R2" / "test.jsonl", anli_lines("b"))
        result = ingest_prompts(engine, "anli", tmp_path / "anli", task_names={"*": "x_*", "R2": "second"})
        assert set(result.counts) == {("test", "x_R1"), ("test", "second")}


class TestDraw:
    @pytest.mark.parametrize(("n_prompts", "n"), [(10_042, 1_005), (11_490, 1_150), (10, 2), (2, 1), (100, 11)])
    def test_a_tenth_is_what_the_paper_has(self, n_prompts: int, n: int) -> None:
        assert count_drawn(n_prompts, 0.1) == n

    @examples(max_examples=60)
    @given(st.integers(2, 100_000), st.integers(1, 999))
    def test_so_many_are_drawn_as_the_decimals_report(self, n_prompts: int, thousandths: int) -> None:
        exact = Decimal(thousandths) * n_prompts / 1000
        n = math.floor(exact) + 1
        if n >= n_prompts:
            with pytest.raises(SelectionError):
                count_drawn(n_prompts, thousandths / 1000)
        else:
            assert count_drawn(n_prompts, thousandths / 1000) == n

    @pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, math.nan, math.inf])
    def test_a_fraction_that_is_none_is_refused(self, fraction: float) -> None:
        with pytest.raises(SelectionError, match="must lie between 0 and 1"):
            count_drawn(100, fraction)

    @examples(max_examples=30)
    @given(st.sets(st.binary(min_size=4, max_size=4), min_size=3, max_size=40), st.sampled_from([0.1, 0.25, 0.5]))
    def test_the_smallest_lots_are_drawn(self, lots: set[bytes], fraction: float) -> None:
        last = find_last_hash(lots, fraction)
        assert sum(lot <= last for lot in lots) == count_drawn(len(lots), fraction)

    def test_the_order_of_files_and_rows_does_not_change_the_draw(self, engine: sa.Engine, tmp_path: Path) -> None:
        rows = [*hellaswag("val", 30), *hellaswag("train", 30)]
        json_lines(tmp_path / "one.jsonl", rows)
        json_lines(tmp_path / "parts" / "b" / "val.jsonl", rows[29::-1])
        json_lines(tmp_path / "parts" / "a" / "train.jsonl", rows[:29:-1])
        for name, source in (("one", tmp_path / "one.jsonl"), ("parts", tmp_path / "parts")):
            result = ingest_prompts(engine, name, source, preset="hellaswag", test_fraction=0.1, seed=3)
            assert result.counts == {("test", ""): 7, ("train", ""): 53}
        assert splits(engine, "one") == splits(engine, "parts")

    def test_another_seed_draws_other_prompts_of_all_splits(self, engine: sa.Engine, tmp_path: Path) -> None:
        file = json_lines(tmp_path / "all.jsonl", [*hellaswag("val", 40), *hellaswag("train", 40)])
        drawn = []
        for seed in (0, 1):
            ingest_prompts(engine, f"h{seed}", file, preset="hellaswag", test_fraction=0.25, seed=seed)
            drawn.append({key for key, split in splits(engine, f"h{seed}").items() if split == "test"})
        assert drawn[0] != drawn[1]
        assert {key.partition("-")[0] for key in drawn[0]} == {"validation", "train"}

    def test_equal_prompts_of_several_splits_do_not_make_the_test_larger(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        rows = [{"question": "Same?", "answer": "yes"}] * 4
        json_lines(tmp_path / "d" / "train.jsonl", rows)
        json_lines(tmp_path / "d" / "dev.jsonl", rows)
        result = ingest_prompts(engine, "same", tmp_path / "d", test_fraction=0.3)
        assert result.counts == {("test", ""): 3, ("train", ""): 5}
        assert len(stored_prompts(engine, "same")) == 8

    def test_prompts_without_an_answer_are_not_drawn_and_counted(self, engine: sa.Engine, tmp_path: Path) -> None:
        rows = [*hellaswag("val", 10), *hellaswag("test", 5, labelled=False)]
        result = ingest_prompts(engine, "h", json_lines(tmp_path / "a.jsonl", rows), preset="hellaswag",
                               test_fraction=0.1)  # fmt: skip
        assert sum(result.counts.values()) == 10
        assert list(result.skipped.values()) == [5]

    def test_prompts_that_are_stored_in_other_splits_are_not_drawn_silently(
        self, engine: sa.Engine, tmp_path: Path
    ) -> None:
        file = json_lines(tmp_path / "hellaswag_val.jsonl", hellaswag("val", 10))
        ingest_prompts(engine, "hellaswag", file)
        with pytest.raises(ConflictError, match=r"10 of these prompts .* such as hellaswag@drawn"):
            ingest_prompts(engine, "hellaswag", file, test_fraction=0.2)
        assert set(splits(engine, "hellaswag").values()) == {"validation"}
        ingest_prompts(engine, "hellaswag@drawn", file, test_fraction=0.2)
        assert sorted(filter(None, splits(engine, "hellaswag").values())).count("test") == 3

    def test_prompts_that_stay_in_their_earlier_split_are_reported(self, engine: sa.Engine, tmp_path: Path) -> None:
        rows = [stem_and_options(n, "A") for n in range(2)]
        ingest_prompts(engine, "commonsense_qa", json_lines(tmp_path / "dev.jsonl", rows))
        result = ingest_prompts(engine, "commonsense_qa", json_lines(tmp_path / "validation.jsonl", rows))
        assert result.warnings[-1] == ("2 prompts keep the split that is stored (2 as dev, here validation)")


class TestSavedToDisk:
    def test_what_the_package_saves_is_read_without_it(self, engine: sa.Engine, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        labels = datasets.ClassLabel(names=["entailment", "neutral", "contradiction"])
        parts = {
            name: datasets.Dataset.from_list(list(anli_hub(name))).cast_column("label", labels)
            for name in ("test_r1", "train_r3")
        }
        datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved", num_shards={"test_r1": 2, "train_r3": 1})
        parts["test_r1"].save_to_disk(tmp_path / "one_r1")
        result = ingest_prompts(engine, "anli", tmp_path / "saved")
        assert result.counts == {("test", "R1"): 3, ("train", "R3"): 3}
        assert [row["answer"] for row in stored_prompts(engine, "anli")][:3] == ["A", "B", "C"]
        assert ingest_prompts(engine, "one", tmp_path / "one_r1", preset="anli").counts == {("", "R1"): 3}

    def test_files_that_lie_beside_the_saved_ones_are_passed_over(self, engine: sa.Engine, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        datasets.Dataset.from_list(list(anli_hub("a"))).save_to_disk(tmp_path / "test_r1")
        (tmp_path / "test_r1" / "cache-0123.arrow").write_bytes(b"left over")
        assert ingest_prompts(engine, "anli", tmp_path / "test_r1").n_prompts == 3

    def test_bookkeeping_that_is_damaged_is_reported(self, engine: sa.Engine, tmp_path: Path) -> None:
        (tmp_path / "state.json").write_text("{}")
        with pytest.raises(BadInputError, match="is not a state file of the package `datasets`"):
            ingest_prompts(engine, "anli", tmp_path)


class TestHub:
    def test_without_a_network_it_is_reported_within_seconds(
        self, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("datasets")
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(
            BadInputError, match=r"allenai/ai2_arc: is not a local path, and the Hugging Face Hub cannot be"
        ):
            ingest_prompts(engine, "arc", "allenai/ai2_arc")

    def test_without_the_package_the_extra_is_named(self, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "datasets", None)  # as Python marks what cannot be imported
        with pytest.raises(MissingExtraError, match=r"pip install '\.\[hub\]'"):
            ingest_prompts(engine, "arc", "allenai/ai2_arc")

    def test_a_path_that_is_not_here_is_no_name_of_the_hub(self, engine: sa.Engine) -> None:
        for source in ("missing.jsonl", "./missing", "a/b/c", "/missing/file"):
            with pytest.raises(BadInputError, match="does not exist"):
                ingest_prompts(engine, "arc", source, preset="arc")

    def test_loaded_splits_give_the_prompts_of_the_files_they_were_made_of(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        datasets = pytest.importorskip("datasets")
        rows = [stem_and_options(n, "A", "ABCD") for n in range(2)]
        files = {split: str(json_lines(tmp_path / f"{split}.jsonl", rows)) for split in ("train", "test")}
        loaded = datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path / "cache"))
        result = list(hub.iterate_split_rows({"ARC-Easy": loaded}))
        assert [(row.split, row.place) for row in result] == [
            ("test", "ARC-Easy, test, row 1"), ("test", "ARC-Easy, test, row 2"),
            ("train", "ARC-Easy, train, row 1"), ("train", "ARC-Easy, train, row 2"),
        ]  # fmt: skip
        assert result[0].text("question.stem") == "Where is thing 0?"
        assert "ARC-Easy" in result[0].hints

    def test_configurations_are_of_the_hub_alone(self, engine: sa.Engine, tmp_path: Path) -> None:
        file = json_lines(tmp_path / "a.jsonl", anli_lines("a"))
        with pytest.raises(BadInputError, match="Omit --config"):
            ingest_prompts(engine, "anli", file, configs=["plain_text"])
