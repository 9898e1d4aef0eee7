"""Presets of known data sets, one module each; `PRESET` defines how to read a row."""
