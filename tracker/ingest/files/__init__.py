"""Bytes to rows: compression, JSON, CSV, Parquet."""
