"""Clustering by non-negative matrix factorization over clients: the papers ``fedmf`` and ``fedc``."""
