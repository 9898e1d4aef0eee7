"""Published data sets as prompts: presets for known ones, a mapping of fields for the others."""
