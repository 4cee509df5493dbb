"""Drawing: from result files to pictures and tables. It reads results only and never computes a method."""
