"""Command drives: command lines in, files, tables and an exit code out; one module per job, named like it."""
