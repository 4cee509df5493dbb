"""Inductive matrix completion (``perfedsi``): one method a module."""
