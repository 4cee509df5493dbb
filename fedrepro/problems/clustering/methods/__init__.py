"""Methods for the problem ``clustering``, one per module."""
