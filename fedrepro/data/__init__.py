"""Datasets on disk: where they are stored, whether they are intact, and how loaders receive them."""

IN_RUNS = "reads"  # the content of files has a fingerprint; see fedrepro.runs.identity.code
