"""Records as files: one registry of export formats, and what they share."""
