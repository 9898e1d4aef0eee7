"""Load arrays and frames from the store; never ORM rows."""
