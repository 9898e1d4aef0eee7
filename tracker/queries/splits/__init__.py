"""Splits of prompts, such as test and validation: their names, and which of them a selection uses."""
