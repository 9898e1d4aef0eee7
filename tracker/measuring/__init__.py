"""Asking a model: what prompts mean, as vectors. The packages of the extra `models` are imported only here."""
