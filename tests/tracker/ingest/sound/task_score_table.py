"""Tables of a model and a task in each row."""

from __future__ import annotations

from tracker.ingest.measurement import ReadOptions

FILES = {
    "task_scores.csv": b"model,task,score,stderr,n\nA,x,1,0.1,5\nB,x,0,,\n",
    "more.csv": b"model,task,metric,score\nA,x,acc,1\nA,x,f1,0.5\nA,y,acc,0\n",
}
OPTIONS = [ReadOptions(benchmark="b")]
