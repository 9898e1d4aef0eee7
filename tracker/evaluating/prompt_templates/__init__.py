"""Render prompts with a template, with few-shot examples, with or without the question."""
