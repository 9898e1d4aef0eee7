"""Write a report of a benchmark as one HTML file that needs no installation."""
