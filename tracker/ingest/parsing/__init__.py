"""One file through the format that recognises it: its blocks, kept, counted and searched for duplicates."""
