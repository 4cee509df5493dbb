"""Methods for the problem ``shift``, one per module."""
