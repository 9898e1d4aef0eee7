"""Confidence intervals of means: of independent prompts, of prompts in strata, and of prompts in clusters."""
