"""Reading of files: compression, JSON, CSV, Parquet."""
