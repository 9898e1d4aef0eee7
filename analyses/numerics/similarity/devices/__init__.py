"""Pair counts and draws on a device of PyTorch: the same integers as those of the kernels.

Only this package and `tracker.evaluating` import PyTorch. Import it when a device is used.
"""
