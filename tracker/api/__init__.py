"""The Python API: what `import tracker` offers, on one screen."""
