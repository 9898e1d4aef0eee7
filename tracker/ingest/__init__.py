"""From a file, through measurements, into the store."""
