"""Distributions of the cosines of the rows of a continuous table."""
