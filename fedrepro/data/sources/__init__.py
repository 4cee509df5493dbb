"""One module per dataset with files: where they come from, how any copy of them is read and checked."""
