"""Score responses, and extract answers from them."""
