"""Similarity of performance against similarity of meaning."""
