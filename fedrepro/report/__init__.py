"""What came out: claims, numbers beside the published ones, the discrepancy ledger, and comparisons of two runs."""
