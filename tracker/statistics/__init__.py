"""Statistics shared by tracker and analyses: errors, intervals, ranks, tests; imports nothing else of the project."""
