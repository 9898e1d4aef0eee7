"""Leaderboards: a model in each row."""

from __future__ import annotations

from tracker.ingest.measurement import ReadOptions

FILES = {"leaderboard.csv": b"model,ARC,MMLU\nA,1,2\nB,3,\n", "shares.csv": b"Model;x;y\nA;0.5;1\nB;1;0\n"}
OPTIONS = [ReadOptions(benchmark="b"), ReadOptions(benchmark="b", metric="points", lower=0.0, upper=100.0)]
