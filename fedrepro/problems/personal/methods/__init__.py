"""Methods for the problem ``personal``, one a module."""
