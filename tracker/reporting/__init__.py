"""From records to what people take away: files of kept prompts, and samples for a human to read."""
