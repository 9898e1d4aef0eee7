"""Clusters of prompts by their scores."""
