"""Clustering by matrix factorization (``fedmf``, ``fedc``): one method a module."""
