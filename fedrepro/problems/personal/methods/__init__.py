"""Methods for the problem ``personal``, one per module."""
