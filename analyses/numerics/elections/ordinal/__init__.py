"""Ordinal sensitivity: how far added models can change the ranking by win rates."""
