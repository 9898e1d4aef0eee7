"""Findings in plain words: one module per question."""
