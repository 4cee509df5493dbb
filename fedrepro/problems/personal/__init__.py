"""Personalized networks with side information: the paper ``perfedsi``."""
