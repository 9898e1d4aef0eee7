"""Mixed models of scores: models, families, tasks, models within tasks, and prompts as crossed random effects."""
