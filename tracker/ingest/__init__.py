"""Import of result files: parsing, name resolution and storage."""
