"""Ours beside its peer, in one run, as a ratio."""
