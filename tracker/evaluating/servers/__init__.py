"""Language models behind a server with OpenAI's API."""
