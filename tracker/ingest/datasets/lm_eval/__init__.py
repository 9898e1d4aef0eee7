"""Tasks of lm-evaluation-harness: read their YAML files, and render their documents as that harness does."""
