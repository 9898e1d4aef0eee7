"""Real and faithful files of every harness: none is overlooked, and all go into one store."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from tracker.database import transaction
from tracker.errors import UnknownFormatError
from tracker.ingest.format_registry import load_formats
from tracker.ingest.measurement import ReadOptions
from tracker.ingest.parsing.detection import find_files, parse_file
from tracker.ingest.pipeline import ingest_file
from tracker.ingest.write.checksums import verify_checksums

NO_RESULTS = {
    "README.md": "prose",
    "every_eval_ever/data/README.md": "prose",
    "every_eval_ever/eval.schema.json": "the schema of the aggregates",
    "every_eval_ever/instance_level_eval.schema.json": "the schema of the instances",
}
"""Files that hold no results, and what they hold."""


@pytest.fixture
def samples(shared: Path) -> Path:
    folder = shared / "samples"
    if not folder.is_dir():
        pytest.skip(f"no samples of harnesses in {shared}")
    return folder


def test_every_file_is_a_result_or_belongs_to_one_or_is_known_to_hold_none(samples: Path) -> None:
    known = load_formats()
    accounted: set[Path] = {samples / name for name in NO_RESULTS}
    for path in find_files([samples], ReadOptions()):
        reading = parse_file(path, ReadOptions(model="m" if "lm_eval" in path.parts else None, benchmark="b"))
        accounted.update(reading.files)
        assert reading.format in known
    for path in sorted(samples.rglob("per_instance_stats.json")):
        accounted.update(path.parent.iterdir())  # a run folder is one result, whichever of its files were needed
    assert {path for path in samples.rglob("*") if path.is_file()} - accounted == set()


@pytest.mark.parametrize("name", NO_RESULTS)
def test_files_without_results_are_rejected_in_three_lines(samples: Path, name: str) -> None:
    with pytest.raises(UnknownFormatError, match=r"no format matches this file \(.*\)\.\n.*--format"):
        parse_file(samples / name, ReadOptions())


def test_all_of_them_go_into_one_store_which_stays_sound(samples: Path, store: sa.Engine) -> None:
    for path in find_files([samples], ReadOptions()):
        model_name = "org/model" if "lm_eval" in path.parts else None
        result = ingest_file(
            store, path, ReadOptions(model=model_name, benchmark="small" if "tabular" in path.parts else None)
        )
        assert result.changes is not None
    with transaction(store, write=False) as session:
        assert verify_checksums(session) == []
        of_formats = set(session.scalars(sa.text("SELECT DISTINCT format FROM source")))
        n_scores = session.scalar(sa.text("SELECT count(*) FROM score"))
    assert of_formats >= {
        "evalplus", "every-eval-ever", "helm", "inspect-ai", "lighteval", "lm-eval", "openai-evals", "opencompass",
        "swe-bench", "long-table", "wide-table",
    }  # fmt: skip
    assert n_scores > 200
