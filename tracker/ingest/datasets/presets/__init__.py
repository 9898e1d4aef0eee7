"""Data sets whose published shape is known, a module each: `PRESET` says how a row becomes a prompt."""
