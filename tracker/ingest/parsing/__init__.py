"""Parsing of a file with the format that matches it: blocks, counts and duplicates."""
