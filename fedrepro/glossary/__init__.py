"""The meaning of every name that a spec can use, as plain data: ``fedrepro describe`` prints it."""
