"""Rank models by their scores, with the uncertainty of each mean."""
