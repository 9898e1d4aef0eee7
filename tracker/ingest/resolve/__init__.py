"""Names and content hashes resolved to keys of the store."""
