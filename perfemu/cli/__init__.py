"""cli: the command line, one command per file. Each has ``main(arguments) -> exit status``; see main.py's table."""
