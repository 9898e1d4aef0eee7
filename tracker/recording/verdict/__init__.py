"""The verdict on a benchmark: who is first, what could change that, and what its data cannot show."""
