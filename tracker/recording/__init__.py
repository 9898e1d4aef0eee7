"""Record findings: the pipeline, the discovery of analyses, publishing to MLflow."""
