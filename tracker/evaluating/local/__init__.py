"""Local language models. Only this package imports torch and transformers."""
