"""Which process computes which runs, on this machine or on others."""
