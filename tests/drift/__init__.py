"""Check that imports agree with current and old releases of the evaluation harnesses: ``make drift``."""
