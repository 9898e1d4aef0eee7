"""Comparison of questions without the decoration that harnesses add to them."""
