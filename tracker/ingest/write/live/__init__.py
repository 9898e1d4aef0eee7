"""Storage of runs while they are evaluated."""
