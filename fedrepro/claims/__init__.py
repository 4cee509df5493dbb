"""Claims: whether the results support them."""
