"""The commands of `suffrage export`, a module for each."""
