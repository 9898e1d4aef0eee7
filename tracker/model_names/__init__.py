"""What the names of models show."""
