"""Recorded filters, and the inputs of the analyses that filter prompts."""
