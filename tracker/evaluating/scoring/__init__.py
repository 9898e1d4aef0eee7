"""From what a model did with a question to scores and answers."""
