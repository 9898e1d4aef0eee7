"""Import of published data sets as prompts, by presets or by a mapping of fields."""
