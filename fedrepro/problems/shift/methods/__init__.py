"""Methods for the problem ``shift``, one a module."""
