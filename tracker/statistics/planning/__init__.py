"""Power of tests, and the numbers of prompts and trials that a study needs."""
