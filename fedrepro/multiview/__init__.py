"""What linear and deep generalized CCA share: views, the MAX-VAR problem, the federated loop and its kernels."""
