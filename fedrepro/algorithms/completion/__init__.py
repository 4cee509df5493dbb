"""Matrix completion (``fedmc``): one method a module."""
