"""`python -m tracker.cli`."""

from tracker.cli import main

if __name__ == "__main__":
    main()
