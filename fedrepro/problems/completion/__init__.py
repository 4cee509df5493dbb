"""Matrix completion over clients: the paper ``fedmc``."""
