"""Prompts with nearly the same meaning: distances, threshold, groups."""
