"""Scores as dense arrays in files beside the store, which load in milliseconds and are never older than the store."""
