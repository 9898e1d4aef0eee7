"""`python -m tracker.cli`."""

from tracker.cli import main

main()
