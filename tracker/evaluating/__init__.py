"""Run models on prompts: compute embeddings and evaluate responses. Only this package imports the extra `models`."""
