"""Methods for the problem ``imc``, one per module."""
