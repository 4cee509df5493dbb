"""``python -m fedrepro``."""

from fedrepro.cli.main import main

main()
