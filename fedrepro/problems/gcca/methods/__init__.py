"""Methods for the problem ``gcca``, one per module."""
