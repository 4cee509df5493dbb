"""Regression with a bias for each client (``perfedsi``): one method a module."""
