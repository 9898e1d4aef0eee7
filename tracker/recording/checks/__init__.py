"""Checks of `suffrage doctor` and `suffrage db check`."""
