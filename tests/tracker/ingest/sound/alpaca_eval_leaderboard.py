"""Leaderboards of AlpacaEval, of both forms."""

from __future__ import annotations

from tracker.ingest.measurement import ReadOptions

RESULTS = """,win_rate,standard_error,n_total,discrete_win_rate,avg_length,length_controlled_winrate,lc_standard_error
model-1,76.9,0.9,805,83.9,872,86.4,0.14
model-2,50.0,,805,50.0,2049,50.0,
"""
SITE = """name,length_controlled_winrate,win_rate,avg_length,link,samples,filter
Model 1,86.4,76.9,872,https://example.org,,community
Model 1,80.0,70.0,872,https://example.org,,community
"""
FILES = {
    "weighted_alpaca_eval_gpt4_turbo_leaderboard.csv": RESULTS.encode(),
    "data_AlpacaEval/claude_leaderboard.csv": SITE.encode(),
}
OPTIONS = [ReadOptions()]
