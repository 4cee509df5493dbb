"""Personalised image classification (``perfedsi``): one method a module."""
