"""Kinds of question, one module per task; each names its kinds in `KINDS`."""
