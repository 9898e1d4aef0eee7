"""Resolution of names and content hashes to keys of the store."""
