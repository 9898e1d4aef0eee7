"""Asking a model: what prompts mean, as vectors, and what it answers. The extra `models` is imported only here."""
