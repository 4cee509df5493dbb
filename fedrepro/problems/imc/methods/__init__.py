"""Methods for the problem ``imc``, one a module."""
