"""What a command may do that has its process to itself, as those of `tracker.cli.main` have."""

OF_COMMAND = "process of the command"
"""Object of the context of such a command."""
