"""Language models in this process: torch and transformers are imported only here."""
