"""Export records to files: one registry of export formats, and shared code."""
