"""Publish to MLflow, a view of the store that can be rebuilt from it; the only importer of `mlflow`."""
