"""Rankings by some of the tasks beside the ranking by all."""
