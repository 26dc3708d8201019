"""Round moments of a zone's clock along a span, also where that clock goes back or forth."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from math import gcd

from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.times import Times

#: What a reader counts in, in minutes.
STEPS_MIN = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
MOST = 10
#: Zones stand quarters of an hour apart.
_QUARTER_MIN = 15


def ticks(span: Span, times: Times, most: int = MOST) -> list[tuple[datetime, str]]:
    """At most about ``most`` moments and what to write there: the day where one begins, else the time."""
    length_min = (span.end - span.start) / timedelta(minutes=1)
    step_min = next((step for step in STEPS_MIN if length_min <= most * step), STEPS_MIN[-1])
    found, before = [], None
    for at in _sampled(span, step_min):
        key = _key(times.local(at), step_min)
        if before is not None and key != before and at >= span.start:
            found.append((at, _label(at, before[0], times)))
        before = key
    return found


def _sampled(span: Span, step_min: int) -> Iterator[datetime]:
    """Often enough to meet each round local moment; the first lies before the span."""
    every = timedelta(minutes=gcd(step_min, _QUARTER_MIN))
    at = span.start - (span.start - datetime.min.replace(tzinfo=span.start.tzinfo)) % every - every
    while at <= span.end:
        yield at
        at += every


def _key(local: datetime, step_min: int) -> tuple[date, int, timedelta | None]:
    """Changes where the next step begins; an hour that comes twice begins twice."""
    offset = local.utcoffset() if step_min <= 60 else None
    return local.date(), (60 * local.hour + local.minute) // step_min, offset


def _label(at: datetime, day_before: date, times: Times) -> str:
    local = times.local(at)
    return f"{local:%a %d %b}" if local.date() != day_before else times.clock(at)
