"""Format numbers for people: each with its unit, rounded so that it never looks better than it is."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import dropwhile

NO_VALUE = "–"
_BARS = "▁▂▃▄▅▆▇█"


def format_milliseconds(us: float | None) -> str:
    """Return microseconds as milliseconds with about three digits: 3.42 ms, 42.1 ms, 231 ms, 10,000 ms."""
    if us is None:
        return NO_VALUE
    ms = us / 1000
    digits = 2 if ms < 10 else 1 if ms < 100 else 0
    return f"{ms:,.{digits}f} ms"


def format_seconds(length: float | None) -> str:
    """Return seconds rounded up, as upper bounds are: 0 s, 0.4 s, 12 s, 2 min 5 s."""
    if length is None:
        return NO_VALUE
    tenths = math.ceil(10 * length - 1e-9)
    if 0 < tenths < 100:
        return f"{tenths / 10:.1f} s"
    return format_duration(timedelta(seconds=math.ceil(length)))


def format_percent(ratio: float | None, digits: int = 3) -> str:
    """Return a ratio of 0 to 1 in percent, rounded down, so that only exactly 1 reads 100%."""
    if ratio is None:
        return NO_VALUE
    if ratio == 1:
        return "100%"
    # The tolerance keeps 0.9995, slightly less in binary, from reading 99.949%.
    scaled = math.floor(ratio * 10 ** (digits + 2) + 1e-7)
    return f"{min(scaled, 10 ** (digits + 2) - 1) / 10**digits:.{digits}f}%"


def format_minutes(value: float | None) -> str:
    """Return error budget minutes with two decimals below 10, since a whole budget may be 1.01 min."""
    if value is None:
        return NO_VALUE
    return f"{value:,.{2 if abs(value) < 10 else 1}f} min".replace("-", "−")


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, plural unless it is 1: 1 broker, 1,200 brokers."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_number(number: int | None) -> str:
    """Return a number with thousands separators: 1,200."""
    return NO_VALUE if number is None else f"{number:,}"


def format_broker(broker_id: int | None) -> str:
    """Return a broker as people write it: broker 2."""
    return NO_VALUE if broker_id is None else f"broker {broker_id}"


def to_milliseconds(us: int | None) -> float | None:
    """Return microseconds as milliseconds."""
    return None if us is None else us / 1000


def format_duration(length: timedelta) -> str:
    """Return a duration in its two largest units: 42 s, 4 min 10 s, 2 h 5 min, 3 d 4 h."""
    left_s = max(0, int(length.total_seconds()))
    parts: list[tuple[int, str]] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        amount, left_s = divmod(left_s, size)
        if amount or parts or unit == "s":
            parts.append((amount, unit))
    return " ".join(f"{amount} {unit}" for amount, unit in parts[:2] if amount or len(parts) == 1)


def format_instant(at: datetime) -> str:
    """Return an instant in UTC, as "2026-03-02 10:00:00 UTC"."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def draw_sparkline(values: Sequence[float | None]) -> str:
    """Return one bar per value, scaled from minimum to maximum.

    A missing value is a dot; leading missing values are left out.
    """
    present = [value for value in values if value is not None]
    if not present:
        return ""
    lowest, width = min(present), max(present) - min(present)

    def draw_bar(value: float | None) -> str:
        if value is None:
            return "·"
        return _BARS[round((len(_BARS) - 1) * (value - lowest) / width) if width else 0]

    return "".join(map(draw_bar, dropwhile(lambda value: value is None, values)))
