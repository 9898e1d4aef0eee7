"""Findings as pictures: one module per question, and what they share."""
