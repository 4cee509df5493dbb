"""fedrepro: does this federated method do what its paper says?"""

__version__ = "0.1.0"
