"""Import of archives: a store's catalogue and measurements in one file."""
