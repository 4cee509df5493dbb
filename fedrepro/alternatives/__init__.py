"""Open settings of the papers: their other values applied to figures, planned, computed, kept and compared."""
