"""Methods for the problem ``completion``, one a module."""
