"""Cosines of all pairs of rows of a table of any scores, in bins."""
