"""Deep MAX-VAR GCCA (``gcca``): one method a module."""
