"""Datasets, one per module: arrays for problems, from files or generated."""
