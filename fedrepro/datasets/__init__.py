"""Datasets, one a module: arrays for problems, from files or generated."""
