"""Benchmarks, models, runs and their names."""
