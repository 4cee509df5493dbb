"""Claims: the language in which they are written, and whether they hold."""
