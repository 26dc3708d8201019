"""Convert values to JSON and CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from typing import Any

#: A spreadsheet evaluates a text with such a first character as a formula (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header line.

    None is an empty cell, lists are joined by semicolons, maps are written as name=value, and a text that a
    spreadsheet would evaluate as a formula gets a leading apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_to_cell(row.get(name)) for name in columns])
    return text.getvalue()


def to_json_value(value: Any) -> Any:
    """Return a value as JSON types: dataclasses as objects, instants in RFC 3339 with Z for UTC."""
    if is_dataclass(value) and not isinstance(value, type):
        return to_json_value(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): to_json_value(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(element) for element in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def _to_cell(value: Any) -> Any:
    cell = to_json_value(value)
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, dict):
        cell = [f"{name}={element}" for name, element in cell.items()]
    text = ";".join(str(element) for element in cell) if isinstance(cell, list) else cell
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text
