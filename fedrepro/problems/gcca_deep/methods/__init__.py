"""Methods for the problem ``gcca-deep``, one per module."""
