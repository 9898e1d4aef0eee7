"""Benchmarks that grow prompt by prompt."""
