"""Methods for the problem ``clustering``, one a module."""
