"""What every name that a spec can use stands for, as plain data: ``fedrepro describe`` prints it."""
