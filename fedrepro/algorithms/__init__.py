"""Methods, one a module, in folders named after the problems they solve. Importing a module registers its names."""
