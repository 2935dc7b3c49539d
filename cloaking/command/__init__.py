"""Run the commands: parse the command line, start Spark, write the results; each command's module has its name."""
