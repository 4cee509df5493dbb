"""The report: claims, numbers beside the published ones, discrepancies, and comparisons of two runs."""
