"""What the numbers mean: one module per question, found through the entry-point group ``suffrage.analyses``."""
