"""Prompts embedded by an encoder."""
