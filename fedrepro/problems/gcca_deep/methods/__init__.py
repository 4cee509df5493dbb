"""Methods for the problem ``gcca-deep``, one a module."""
