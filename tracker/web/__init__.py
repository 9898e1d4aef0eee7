"""The browser interface: read benchmarks, models, runs, prompts, responses and findings; it never writes."""
