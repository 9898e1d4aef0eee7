"""Storage of measurements."""
