"""Models compared on the same prompts: differences with their errors, tests, power, and which ranks are apart."""
