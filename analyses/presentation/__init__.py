"""Figures, tables, warnings and validation that several analyses share."""
