"""Compute round local times along a span, correct also where the clock changes."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from math import gcd

from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.times import TimeFormat

#: Step sizes in minutes that a reader expects.
STEPS_MIN = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
MAX_TICKS = 10
#: Time zone offsets are multiples of a quarter of an hour.
_QUARTER_MIN = 15


def compute_ticks(span: Span, times: TimeFormat, most: int = MAX_TICKS) -> list[tuple[datetime, str]]:
    """Return at most about ``most`` times with their labels.

    A label is the date where a day begins, else the time of day.
    """
    length_min = (span.end - span.start) / timedelta(minutes=1)
    step_min = next((step for step in STEPS_MIN if length_min <= most * step), STEPS_MIN[-1])
    tick_labels, previous_key = [], None
    for at in _sampled(span, step_min):
        key = _key(times.to_local(at), step_min)
        if previous_key is not None and key != previous_key and at >= span.start:
            tick_labels.append((at, _label(at, previous_key[0], times)))
        previous_key = key
    return tick_labels


def _sampled(span: Span, step_min: int) -> Iterator[datetime]:
    """Yield times often enough to meet each round local time; the first is before the span."""
    every = timedelta(minutes=gcd(step_min, _QUARTER_MIN))
    at = span.start - (span.start - datetime.min.replace(tzinfo=span.start.tzinfo)) % every - every
    while at <= span.end:
        yield at
        at += every


def _key(local: datetime, step_min: int) -> tuple[date, int, timedelta | None]:
    """Return a key that changes where the next step begins; an hour that occurs twice begins twice."""
    offset = local.utcoffset() if step_min <= 60 else None
    return local.date(), (60 * local.hour + local.minute) // step_min, offset


def _label(at: datetime, day_before: date, times: TimeFormat) -> str:
    local = times.to_local(at)
    return f"{local:%a %d %b}" if local.date() != day_before else times.format_clock(at)
