"""Hooks that store the results of a harness as its runs end, without a manual import."""
