"""Answers on stdout: a page for a person, one JSON value, or CSV."""

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from typing import Any

from rich.console import Console

from fleetgauge_probes.cli import print_json

#: Where no terminal says how wide it is, nothing is cut.
_WIDE = 240


def page() -> Console:
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def answer_json(value: Mapping[str, Any]) -> None:
    print_json(_plain(value))


def answer_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Empty where there is no value; lists joined by semicolons."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])


def _cell(value: Any) -> Any:
    plain = _plain(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    return ";".join(str(one) for one in plain) if isinstance(plain, list) else plain


def _plain(value: Any) -> Any:
    """As JSON has it; moments in RFC 3339, UTC as Z."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value
