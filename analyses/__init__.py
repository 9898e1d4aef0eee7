"""The analyses, one package each, found by entry point (``suffrage.analyses``), and the mathematics they share."""
