"""Simulated benchmarks with a planted truth."""
