"""One module per published dataset with files: where they are, and how a copy of them is read and checked.

A module has ``SOURCES``, a tuple of ``FileSource``: official addresses, published hashes, the licence, a pattern for
the files of a copy, and ``parse``, which turns any usual layout into arrays, refuses other datasets and lists how a
variant differs. CONTRIBUTING.md lists the steps to add a dataset.
"""
