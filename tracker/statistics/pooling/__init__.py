"""Overall effects of several studies."""
