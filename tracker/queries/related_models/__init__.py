"""Related models of a benchmark: near-copies and families."""
