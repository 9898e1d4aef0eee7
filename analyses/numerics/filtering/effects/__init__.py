"""What a filter changes: scores, ranks, agreement, correlations."""
