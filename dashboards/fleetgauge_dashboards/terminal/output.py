"""Write results to stdout: as text, as one JSON value, or as CSV."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from fleetgauge_core.runtime.cli import print_json
from fleetgauge_dashboards.serialization import format_csv, to_json_value

#: Columns of output that does not go to a terminal, so that nothing is truncated.
_PIPE_WIDTH = 240


def open_console() -> Console:
    """Return a console on stdout; without a terminal it is wide enough for every table."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def write_json(value: Mapping[str, Any]) -> None:
    """Write one JSON value to stdout."""
    print_json(to_json_value(value))


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV to stdout."""
    sys.stdout.write(format_csv(columns, rows))
