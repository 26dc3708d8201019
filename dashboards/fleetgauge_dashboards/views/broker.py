"""One broker over a span: both of its legs, what failed and why, and who led in its place."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from fleetgauge_dashboards.links import BrokerView, Leg, Span
from fleetgauge_dashboards.units import NOTHING, count, percent
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.cluster import Number
from fleetgauge_dashboards.views.minutes import Grid, grid, runs

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LegTimeline:
    """One leg on a grid: latencies are the worst of a step in ms, failures its sums by code."""

    leg: Leg
    p50_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]
    p99_censored_ms: tuple[float | None, ...]
    failures: Mapping[str, tuple[int, ...]]
    gaps: tuple[Span, ...]


#: What a reason says of where to look. Kafka's own names, and the agent's (docs/probe.md).
_SAYS = {
    "MSG_TIMED_OUT": "no answer in time: the broker, the way there, or replicas that it waits for",
    "_TRANSPORT": "the connection broke",
    "ACK_LATE": "acknowledged, but after 5 s",
    "NO_REPORT": "nothing was ever heard of it",
    "NOT_LEADING": "the broker was out of sync or silent, and could not lead",
    "NOT_RECEIVED": "acknowledged, and not consumed within 10 s",
    "NOT_ENOUGH_REPLICAS": "too few replicas were in sync to acknowledge",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "written, but too few replicas were in sync to acknowledge",
    "THROTTLED": "held back by a quota of ours",
    "AUTHENTICATION": "the cluster turned us away: credentials",
    "WANTS_TLS": "the connection: it speaks TLS alone",
    "NO_TLS": "the connection: it does not speak TLS",
    "CERTIFICATE_EXPIRED": "the connection: its certificate has expired",
    "CERTIFICATE_OF_ANOTHER_NAME": "the connection: its certificate is for another name",
    "CERTIFICATE_UNTRUSTED": "the connection: its certificate is of no authority that we trust",
    "OUR_CERTIFICATE_REFUSED": "the connection: it does not take our certificate",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why probes failed: how many of each leg, and in which minutes first and last."""

    code: str
    says: str
    probes: Mapping[Leg, int]
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class BrokerMinutes:
    """A broker's minutes; ``numbers`` are sums over the span, ``reasons`` those most often given first."""

    grid: Grid
    legs: tuple[LegTimeline, ...]
    numbers: tuple[Number, ...]
    reasons: tuple[Reason, ...]


def broker_minutes(rows: pa.Table, broker_id: int, span: Span) -> BrokerMinutes:
    """``rows``: both legs of the broker, in no order."""
    steps, every = grid(span), rows.to_pylist()
    by_leg = {leg: [row for row in every if row["leg"] == leg] for leg in Leg}
    return BrokerMinutes(
        steps,
        tuple(_leg(leg, by_leg[leg], steps) for leg in Leg),
        (
            *(_availability(leg, by_leg[leg]) for leg in Leg),
            _lost(by_leg[Leg.CLIENT]),
            _led(by_leg[Leg.CLIENT], broker_id),
        ),
        _reasons(every),
    )


def history(found: Sequence[Alert], view: BrokerView) -> tuple[Alert, ...]:
    """The broker's findings, newest first."""
    whom = (view.cluster_id, view.broker_id)
    return tuple(alert for alert in found if (alert.cluster_id, alert.broker_id) == whom)


def _leg(leg: Leg, rows: Iterable[Row], steps: Grid) -> LegTimeline:
    within: dict[int, list[Row]] = {}
    for row in rows:
        within.setdefault(steps.index(row["minute"].astimezone(UTC)), []).append(row)
    begun = min(within, default=0)
    every = [within.get(i, []) for i in range(steps.size)]
    cells = [[row for row in own if row["measured"]] for own in every]
    # What failed did so in a minute of few attempts too.
    failures = [sum((Counter(dict(row["failures"] or ())) for row in own), Counter[str]()) for own in every]
    return LegTimeline(
        leg,
        _worst("latency_p50_us", cells),
        _worst("latency_p99_us", cells),
        _worst("latency_p99_censored_us", cells),
        {
            code: tuple(counted[code] for counted in failures)
            for code in sorted(set().union(*failures) if failures else ())
        },
        runs(steps, [not cell and step >= begun for step, cell in enumerate(cells)]),
    )


def _reasons(rows: Iterable[Row]) -> tuple[Reason, ...]:
    given: dict[str, list[tuple[Leg, datetime, int]]] = {}
    for row in rows:
        for code, times in dict(row["failures"] or ()).items():
            given.setdefault(code, []).append((Leg(row["leg"]), row["minute"].astimezone(UTC), times))
    found = [
        Reason(
            code,
            _SAYS.get(code, NOTHING),
            {leg: sum(times for one, _, times in seen if one is leg) for leg in Leg},
            min(at for _, at, _ in seen),
            max(at for _, at, _ in seen),
        )
        for code, seen in given.items()
    ]
    return tuple(sorted(found, key=lambda one: (-sum(one.probes.values()), one.code)))


def _worst(column: str, cells: Iterable[Sequence[Row]]) -> tuple[float | None, ...]:
    worst = (max((row[column] for row in cell if row[column] is not None), default=None) for cell in cells)
    return tuple(None if us is None else us / 1000 for us in worst)


def _availability(leg: Leg, rows: Sequence[Row]) -> Number:
    attempted = sum(row["attempted"] or 0 for row in rows)
    succeeded = sum(row["succeeded"] or 0 for row in rows)
    return Number(
        f"Availability, {leg} leg",
        percent(succeeded / attempted if attempted else None),
        None,
        (f"{succeeded:,} of {count(attempted, 'probe')} of the minutes shown",),
        "availability_ratio",
    )


def _lost(rows: Sequence[Row]) -> Number:
    lost, twice = (sum(row[name] or 0 for row in rows) for name in ("lost", "duplicated"))
    return Number("Acknowledged, but lost", f"{lost:,}", None, (f"came twice: {twice:,}",), "lost")


def _led(rows: Sequence[Row], broker_id: int) -> Number:
    """In how many minutes somebody else led the broker's probe partition."""
    measured = [row for row in rows if row["measured"]]
    others = sorted({one for row in measured for one in row["led_by"] or () if one != broker_id})
    elsewhere = sum(1 for row in measured if any(one != broker_id for one in row["led_by"] or ()))
    instead = f"by {', '.join(f'broker {one}' for one in others)}" if others else NOTHING
    return Number("Minutes led by others", f"{elsewhere:,} of {len(measured):,}", None, (instead,), "led_by")
