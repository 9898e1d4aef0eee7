"""Checksums over the content of a store: recorded with every change, compared on request."""
