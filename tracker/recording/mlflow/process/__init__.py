"""A separate process that loads MLflow and publishes."""
