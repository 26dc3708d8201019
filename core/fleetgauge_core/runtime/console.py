"""The terminal of a command. Kept apart from the command line: importing rich takes a tenth of a second."""

from rich.console import Console

#: Messages for people go to stderr; stdout is reserved for results.
console = Console(stderr=True, highlight=False)
