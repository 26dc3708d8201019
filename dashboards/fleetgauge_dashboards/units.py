"""Numbers as a person reads them: a unit on each, and no digit that flatters."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import dropwhile

NOTHING = "–"
_BARS = "▁▂▃▄▅▆▇█"


def milliseconds(us: float | None) -> str:
    """Three digits where it matters: 3.42 ms, 42.1 ms, 231 ms, 10,000 ms."""
    if us is None:
        return NOTHING
    ms = us / 1000
    digits = 2 if ms < 10 else 1 if ms < 100 else 0
    return f"{ms:,.{digits}f} ms"


def seconds(length: float | None) -> str:
    """Rounded up, for it is mostly a bound: 0 s, 0.4 s, 12 s, 2 min 5 s."""
    if length is None:
        return NOTHING
    tenths = math.ceil(10 * length - 1e-9)
    if 0 < tenths < 100:
        return f"{tenths / 10:.1f} s"
    return duration(timedelta(seconds=math.ceil(length)))


def percent(ratio: float | None, digits: int = 3) -> str:
    """Cut, not rounded: only what is whole reads 100%."""
    if ratio is None:
        return NOTHING
    if ratio == 1:
        return "100%"
    # The tolerance keeps 0.9995 from reading 99.949 for its binary form's sake.
    scaled = math.floor(ratio * 10 ** (digits + 2) + 1e-7)
    return f"{min(scaled, 10 ** (digits + 2) - 1) / 10**digits:.{digits}f}%"


def minutes(value: float | None) -> str:
    """Budget minutes; two digits under ten, for a budget may be 1.01 min."""
    if value is None:
        return NOTHING
    return f"{value:,.{2 if abs(value) < 10 else 1}f} min".replace("-", "−")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(length: timedelta) -> str:
    """The two largest units: 42 s, 4 min 10 s, 2 h 5 min, 3 d 4 h."""
    seconds = max(0, int(length.total_seconds()))
    parts: list[tuple[int, str]] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        amount, seconds = divmod(seconds, size)
        if amount or parts or unit == "s":
            parts.append((amount, unit))
    return " ".join(f"{amount} {unit}" for amount, unit in parts[:2] if amount or len(parts) == 1)


def instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def sparkline(values: Sequence[float | None]) -> str:
    """From the least of the values to the most; a dot where there is none, nothing before the first."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    least, width = min(known), max(known) - min(known)

    def bar(value: float | None) -> str:
        if value is None:
            return "·"
        return _BARS[round((len(_BARS) - 1) * (value - least) / width) if width else 0]

    return "".join(map(bar, dropwhile(lambda value: value is None, values)))
