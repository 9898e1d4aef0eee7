"""Findings as tables: one module per question, and what they share."""
