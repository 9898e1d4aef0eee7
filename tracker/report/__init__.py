"""A report of a benchmark as one HTML file, for the person who will never run a command."""
