"""The only writer of measurements."""
