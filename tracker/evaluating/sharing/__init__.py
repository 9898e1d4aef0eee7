"""Evaluation of one run by several commands at once."""
