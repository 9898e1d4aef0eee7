"""Compare two models on every benchmark that both have scores for."""
