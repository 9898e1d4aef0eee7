"""Statistics that the tracker and the analyses share: errors, intervals, ranks, tests; imports nothing of ours."""
