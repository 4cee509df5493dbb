"""Neural networks of the deep parts, written for JAX. Importing this package needs no JAX; running a network does."""
