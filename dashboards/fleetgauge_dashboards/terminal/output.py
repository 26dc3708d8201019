"""Answers on stdout: a page for a person, one JSON value, or CSV."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from fleetgauge_core.runtime.cli import print_json
from fleetgauge_dashboards.serialization import csv_text, plain

#: Where no terminal says how wide it is, nothing is cut.
_WIDE = 240


def page() -> Console:
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def answer_json(value: Mapping[str, Any]) -> None:
    print_json(plain(value))


def answer_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    sys.stdout.write(csv_text(columns, rows))
