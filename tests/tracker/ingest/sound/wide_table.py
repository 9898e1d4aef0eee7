"""Wide tables: as CSV with commas, tabs and semicolons, and as Parquet; scores, and predicted answers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet

from tracker.ingest.measurement import ReadOptions


def parquet(columns: dict[str, list[object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


FILES = {
    "wide.csv": b'prompt_id,"org/A",B\n1,1,0\n2,,0.5\n',
    "tabs.tsv": b"task\tprompt_id\torg/A\tB\nt\t1\t1\t0\nu\t1\t\t0.5\n",
    "semicolons.csv": "prompt_id;größer;B\n1;1;0\n2;0;0.5\n".encode(),
    "wide.parquet": parquet({"prompt_id": [1, 2], "A": [1.0, None], "B": [0, 1]}),
}
OPTIONS = [
    ReadOptions(benchmark="b"),
    ReadOptions(benchmark="b", orient="models"),
    ReadOptions(benchmark="b", values="predictions"),
]
