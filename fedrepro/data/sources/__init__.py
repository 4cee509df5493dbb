"""One module per dataset with files: where they come from, how any copy of them is read and checked.

To add a dataset with files (each step is enforced by ``tests/test_data_cli.py``, ``tests/test_data_fetch.py`` or the
contract tests):

1. a module here with ``SOURCES = (FileSource(...),)``: official addresses, published hashes (None where there is none,
   never an invented one), licence, which files of a copy are wanted, and ``parse``, which turns any usual layout into
   arrays, refuses what cannot be this dataset and lists how a variant differs;
2. a module in ``fedrepro.datasets`` with a frozen dataclass (``fedrepro.protocols.Dataset``) and, beside it, a function
   ``stand_in(wanted, rng)``, registered with ``add_dataset(..., source=NAME, stand_in=stand_in)``;
3. its surrogate in ``fedrepro.datasets.standins``, saying what it imitates and what it does not;
4. tests on small files in the official format, made by ``tests/data_copies.py``.
"""
