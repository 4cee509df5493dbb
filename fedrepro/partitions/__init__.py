"""Ways to assign a dataset to clients, one per module."""
