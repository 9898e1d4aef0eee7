"""Export formats, one module or package each."""
