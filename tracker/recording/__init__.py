"""From a finding to a record: the pipeline, the discovery of analyses, publishing to MLflow."""
