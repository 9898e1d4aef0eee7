"""Runs that are written while a model is evaluated."""
