"""Write results to stdout: as text, as one JSON value, or as CSV."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fleetgauge_core.runtime.cli import print_json
from fleetgauge_core.runtime.console import TerminalConsole
from fleetgauge_dashboards.serialization import format_csv, to_json_value


def open_console() -> TerminalConsole:
    """Return a console on stdout."""
    return TerminalConsole(stderr=False)


def write_json(value: Mapping[str, Any]) -> None:
    """Write one JSON value to stdout."""
    print_json(to_json_value(value))


def write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV to stdout."""
    sys.stdout.write(format_csv(columns, rows))
