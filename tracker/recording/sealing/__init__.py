"""Move scores and answers of runs into sealed files outside the store, and back."""
