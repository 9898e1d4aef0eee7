"""Long tables: every column there is, gzipped and not."""

from __future__ import annotations

import gzip

from tracker.ingest.measurement import ReadOptions

LONG = (
    b"model,id,task,text,choices,gold,metric,score,predicted,gold_probability,condition,trial,benchmark\n"
    b'A,1,t,Why?,"[""a"", ""b""]",B,acc,1,B,0.5,full,0,b\n'
    b'B,1,t,Why?,"[""a"", ""b""]",B,acc,0,A,0.25,answer_only,1,b\n'
)
FILES = {
    "long.csv": LONG,
    "long.csv.gz": gzip.compress(LONG, mtime=0),
    "long.jsonl": b'{"model": "A", "prompt_id": "1", "task": "t", "score": 1, "predicted": "B", "trial": 0}\n'
    b'{"model": "B", "prompt_id": "1", "task": "t", "score": 0.5, "predicted": null, "confidence": 0.25}\n',
    "bare.csv": b"model,id,score\nA,1,1\nA,2,0.5\nB,1,\n",
}
OPTIONS = [
    ReadOptions(benchmark="b", probability_kind="letters"),
    ReadOptions(probability_kind="likelihoods", benchmark="c"),
]
