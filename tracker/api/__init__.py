"""Suffrage from Python: what `import tracker` offers, on one screen."""
