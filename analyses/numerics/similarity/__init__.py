"""Similarity of prompts by the scores of models, counted over all pairs."""
