"""The way out: arrays and frames, never ORM rows."""
