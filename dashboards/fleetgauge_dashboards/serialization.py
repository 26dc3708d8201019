"""Values as JSON and CSV write them."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from typing import Any

#: A text that begins so is a formula to a spreadsheet (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Empty where there is no value; lists joined by semicolons, maps as name=value; a formula is quoted."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return lines.getvalue()


def plain(value: Any) -> Any:
    """As JSON has it; moments in RFC 3339, UTC as Z."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def _cell(value: Any) -> Any:
    written = plain(value)
    if isinstance(written, bool):
        return str(written).lower()
    if isinstance(written, dict):
        written = [f"{name}={one}" for name, one in written.items()]
    text = ";".join(str(one) for one in written) if isinstance(written, list) else written
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text
