"""Cardinal sensitivity: how far weights of tasks can change the ranking by means."""
