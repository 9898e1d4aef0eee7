"""Removal of what an import added."""
