"""Shapes of names and headings: what models, tasks, prompts and side columns are usually named."""
