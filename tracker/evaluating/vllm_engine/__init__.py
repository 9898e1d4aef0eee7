"""Local models computed by vLLM on CUDA devices."""
