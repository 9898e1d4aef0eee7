"""Recorded findings, and whether they are still up to date."""
