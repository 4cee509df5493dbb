"""Linear regression with clients whose data are shifted: the paper ``perfedsi``."""
