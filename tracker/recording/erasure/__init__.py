"""Erase texts of responses from a store and from its files."""
