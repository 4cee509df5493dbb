"""Methods for the problem ``gcca``, one a module."""
