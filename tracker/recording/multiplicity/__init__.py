"""The tests of findings among all recorded tests of their benchmark."""
