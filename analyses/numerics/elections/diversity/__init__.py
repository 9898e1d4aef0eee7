"""Diversity: how far tasks disagree on the order of models."""
