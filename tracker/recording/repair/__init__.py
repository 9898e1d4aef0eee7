"""Restore damaged rows of a store from backups, the files they were imported from, and reruns of analyses.

Rows are accepted only if they have the checksum that the store recorded for them.
"""
