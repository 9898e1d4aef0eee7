"""Benchmarks: Suffrage beside a peer in the same run, as a ratio."""
