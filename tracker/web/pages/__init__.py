"""Pages of the browser interface: one module for each kind, a function for each address."""
