"""Run recorded findings again on the same data, and compare what they return with what is stored."""
