"""Weights of prompts: computed ones and random ones."""
