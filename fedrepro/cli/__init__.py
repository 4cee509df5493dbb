"""The command line: commands read their arguments, call the stages and print."""
