"""Inductive matrix completion with side information: the paper ``perfedsi``."""
