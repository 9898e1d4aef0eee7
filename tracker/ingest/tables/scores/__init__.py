"""Scores in the cells of a table: scales, directions, averages and flags."""
