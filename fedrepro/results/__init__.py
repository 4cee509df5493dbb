"""Results on disk: what they look like, and how they are read."""
