"""The way in: from a file, through measurements, into the store."""
