"""Storage of runs: the store of finished runs, and the results of figures."""
