"""Files of a simulation, as people have them: a prompt table, scores, runs without the question, and vectors."""

from __future__ import annotations

import gzip
import io
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.exporting.output_paths import write_file
from tracker.ingest.measurement import ReadOptions
from tracker.simulation.earlier_run import LABEL, simulate_earlier_run
from tracker.simulation.item_response import SimulatedResponses, Simulation, format_letters

if TYPE_CHECKING:
    import pyarrow as pa

BENCHMARK = "simulated"
METRIC = "accuracy"
ENCODER = "planted-meaning"


@dataclass(frozen=True, kw_only=True)
class ResultFile:
    """A result file and the options of its ingestion.

    Attributes:
        name: of the file, in the folder of the demo.
        options: the options of `suffrage ingest`.
        write: returns its bytes.
    """

    name: str
    options: ReadOptions
    write: Callable[[Simulation], bytes]

    def command(self, folder: Path) -> str:
        """Return the command line that ingests it."""
        options: Mapping[str, str | None] = {
            "--benchmark": self.options.benchmark,
            "--probability-kind": self.options.probability_kind,
        }
        flags = [part for flag, value in options.items() if value for part in (flag, value)]
        return shlex.join(["suffrage", "ingest", str(folder / self.name), *flags])


@dataclass(frozen=True, kw_only=True)
class VectorsFile:
    """A file of embeddings and the encoder's name.

    Attributes:
        name: of the file, in the folder of the demo.
        encoder: name of the encoder.
        write: returns its bytes.
    """

    name: str
    encoder: str
    write: Callable[[Simulation], bytes]

    def command(self, folder: Path) -> str:
        """Return the command line that ingests it."""
        path = str(folder / self.name)
        return shlex.join(["suffrage", "embed", BENCHMARK, "--from-file", path, "--encoder", self.encoder])


def write_files(simulation: Simulation, folder: Path) -> None:
    """Write each of `FILES` that is not there yet; a file is there whole, or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        path = folder / file.name
        if not path.exists():
            write_file(path, file.write(simulation), force=True)


def _prompts(simulation: Simulation) -> bytes:
    import pyarrow as pa

    questions = simulation.questions
    table = pa.table(
        {
            "prompt_id": list(simulation.keys),
            "task": simulation.tasks.tolist(),
            "question": [question.text for question in questions],
            "choices": [json.dumps(question.choices) for question in questions],
            "answer": [question.letter for question in questions],
        }
    )
    return _write_parquet(table)


def _scores(simulation: Simulation) -> bytes:
    import pyarrow as pa

    return _write_parquet(pa.table(_make_long_table(simulation, simulation.full, "full")))


def _earlier_run(simulation: Simulation) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    then = simulate_earlier_run(simulation)
    n_prompts = len(then.right)
    table = {
        "model": [then.model] * n_prompts,
        "run": [LABEL] * n_prompts,
        "prompt_id": list(simulation.keys),
        "task": simulation.tasks.tolist(),
        "metric": [METRIC] * n_prompts,
        "score": then.right.astype(np.int64),
    }
    buffer = io.BytesIO()
    csv.write_csv(pa.table(table), buffer)
    return gzip.compress(buffer.getvalue(), mtime=0)


def _answer_only(simulation: Simulation) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    buffer = io.BytesIO()
    csv.write_csv(pa.table(_make_long_table(simulation, simulation.answer_only, "answer_only")), buffer)
    return gzip.compress(buffer.getvalue(), mtime=0)


def _vectors(simulation: Simulation) -> bytes:
    import pyarrow as pa

    numbers = pa.array(simulation.meaning.ravel())
    vectors = pa.FixedSizeListArray.from_arrays(numbers, simulation.meaning.shape[1])
    return _write_parquet(pa.table({"prompt_id": list(simulation.keys), "vector": vectors}))


def _make_long_table(simulation: Simulation, responses: SimulatedResponses, condition: str) -> dict[str, Any]:
    """Columns of a long table: one row per model and prompt, model by model."""
    n_prompts, n_models = responses.right.shape
    return {
        "model": np.repeat(simulation.models, n_prompts).tolist(),
        "prompt_id": list(simulation.keys) * n_models,
        "task": simulation.tasks.tolist() * n_models,
        "metric": [METRIC] * (n_prompts * n_models),
        "score": responses.right.T.ravel().astype(np.float64),
        "predicted": format_letters(responses.predicted).T.ravel().tolist(),
        "gold_probability": responses.gold_probability.T.ravel(),
        "condition": [condition] * (n_prompts * n_models),
    }


def _write_parquet(table: pa.Table) -> bytes:
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


RESULT_FILES = (
    ResultFile(
        name="prompts.parquet",
        options=ReadOptions(benchmark=BENCHMARK),
        write=_prompts,
    ),
    ResultFile(
        name="earlier.csv.gz",
        options=ReadOptions(benchmark=BENCHMARK),
        write=_earlier_run,
    ),
    ResultFile(
        name="scores.parquet",
        options=ReadOptions(benchmark=BENCHMARK, probability_kind="letters"),
        write=_scores,
    ),
    ResultFile(
        name="answer_only.csv.gz",
        options=ReadOptions(benchmark=BENCHMARK, probability_kind="letters"),
        write=_answer_only,
    ),
)

VECTORS_FILE = VectorsFile(
    name="vectors.parquet",
    encoder=ENCODER,
    write=_vectors,
)

FILES: tuple[ResultFile | VectorsFile, ...] = (*RESULT_FILES, VECTORS_FILE)
