"""Tables of prompts: CSV with lists in cells, Parquet with lists, JSON in a column of details."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet

from tracker.ingest.measurement import ReadOptions


def parquet(columns: dict[str, list[object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


FILES = {
    "prompts.csv": b'id,task,text,choices,answer,split\n1,t,Why?,"[""a"", ""b""]",A,test\n2,t,How?,,b,train\n',
    "prompts.jsonl": b'{"prompt_id": "1", "task": "t", "text": "Why?", "choices": ["a", "b"], "gold_answer": "A"}\n'
    b'{"prompt_id": 2, "text": "How?", "choices": null, "gold_answer": "b", "level": {"n": 3}}\n',
    "prompts.parquet": parquet({"id": [1, 2], "text": ["Why?", "How?"], "choices": [["a", "b"], None]}),
}
OPTIONS = [ReadOptions(benchmark="b")]
