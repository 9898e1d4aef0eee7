"""The runs that a selection holds."""
