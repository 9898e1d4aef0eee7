"""Voting rules, and what their winners depend on."""
