"""Load the weights of language models: folders, devices, quantisation and adapters."""
