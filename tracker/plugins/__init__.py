"""Plug-ins: modules found through entry points, and the parameters that their functions declare."""
