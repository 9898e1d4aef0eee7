"""Which prompts a benchmark could do without: the steps of a filter, and what is lost and gained by it.

Rows are prompts, columns are models; larger scores are better.
"""
