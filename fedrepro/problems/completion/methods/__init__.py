"""Methods for the problem ``completion``, one per module."""
