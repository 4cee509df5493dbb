"""Where runs are kept: the store of finished runs, and the results of figures."""
