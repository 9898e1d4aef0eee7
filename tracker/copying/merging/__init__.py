"""Merge a SQLite store into another store: names to keys, all or nothing, with a record to undo it."""
