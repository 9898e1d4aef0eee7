"""Blocks of draws on the workers of a Dask cluster."""
