"""CSV, Parquet and JSON Lines as tables of rows and columns."""
