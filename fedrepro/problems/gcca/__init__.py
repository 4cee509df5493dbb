"""Generalized CCA over nodes with linear maps: the paper ``gcca``."""
