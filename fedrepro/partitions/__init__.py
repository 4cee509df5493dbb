"""Ways to share a dataset out to clients, one a module."""
