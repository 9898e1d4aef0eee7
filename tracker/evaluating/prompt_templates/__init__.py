"""What a model is asked: from a prompt and a template to the words, with worked examples and without the question."""
