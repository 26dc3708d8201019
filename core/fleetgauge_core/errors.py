"""The base of the errors that a command reports in one line, without a traceback."""


class OperationalError(Exception):
    """An error of the configuration, the input or another system, not of this program.

    The message is one line that names what failed and where. A command prints it and ends with exit code 2
    (fleetgauge_core.runtime.cli), so that code between the two need not translate it.
    """
