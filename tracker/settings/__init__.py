"""Settings: options that users set once, in the environment or in the file suffrage.toml."""
