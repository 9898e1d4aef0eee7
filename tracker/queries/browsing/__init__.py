"""Queries behind single pages: one prompt with all responses, lists of prompts, prompts on which models differ."""
