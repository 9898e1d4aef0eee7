"""Generate tokens in batches: which prompts are computed together, and with which cached keys and values."""
