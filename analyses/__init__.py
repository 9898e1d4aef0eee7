"""What the numbers mean: one package per analysis, found through the entry-point group ``suffrage.analyses``."""
