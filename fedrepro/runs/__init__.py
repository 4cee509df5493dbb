"""Runs: what a run is, which ones a figure needs, and how they are computed, kept and written."""
