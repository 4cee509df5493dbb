"""Generalized CCA over nodes with networks: the paper ``gcca``."""
