"""Loops whose blocks run on several workers, and limits on their time."""
