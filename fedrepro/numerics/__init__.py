"""Numerical routines that several problems share."""
