"""Boxes of weights: the most inequalities that weights in them can fulfil at once."""
