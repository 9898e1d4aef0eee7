"""Counts of the pairs of rows of a binary table at every value of every similarity."""
