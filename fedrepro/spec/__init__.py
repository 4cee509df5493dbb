"""Specs: from a YAML file to a figure with panels, curves and claims, and the grammar of claims."""
