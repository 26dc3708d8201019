"""Show one broker over a span: both legs, failed probes and their reasons, and other leaders."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import find_agent_fault, split_failures
from fleetgauge_dashboards.links import (
    BrokerView,
    Span,
)
from fleetgauge_dashboards.units import NO_VALUE, format_count, format_percent
from fleetgauge_dashboards.views.alerts import HealthAlert
from fleetgauge_dashboards.views.cluster import KeyFigure
from fleetgauge_dashboards.views.minutes import TimeGrid, make_grid, merge_marked_steps

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LegTimeline:
    """One leg on a time grid: latencies are the worst of a step in ms, failures its sums by code."""

    leg: Leg
    p50_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]
    p99_censored_ms: tuple[float | None, ...]
    failures: Mapping[str, tuple[int, ...]]
    gaps: tuple[Span, ...]


#: What a failure code means and where to look. The codes are Kafka's, and the agent's own (docs/probe.md).
_FAILURE_TEXTS = {
    "MSG_TIMED_OUT": "no acknowledgement in time: the broker, the network, or a slow in-sync replica",
    "TRANSPORT": "the connection broke",
    "ACK_LATE": "acknowledged, but after more than 5 s",
    "NO_REPORT": "no delivery report arrived",
    "NOT_LEADING": "the home broker was out of sync or did not answer, so it could not lead",
    "NOT_RECEIVED": "acknowledged, but not consumed within 10 s",
    "NOT_ENOUGH_REPLICAS": "too few in-sync replicas to accept the record",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "written, but too few in-sync replicas to acknowledge",
    "WANTS_TLS": "connection: the listener requires TLS",
    "NO_TLS": "connection: the listener does not speak TLS",
    "TLS_REFUSED": "connection: the broker refuses the TLS handshake",
    "CERTIFICATE_EXPIRED": "connection: the broker's certificate has expired",
    "CERTIFICATE_NOT_YET_VALID": "connection: the broker's certificate is not valid yet",
    "CERTIFICATE_OF_ANOTHER_NAME": "connection: the broker's certificate does not match its host name",
    "CERTIFICATE_UNTRUSTED": "connection: the broker's certificate is not signed by a trusted authority",
}


@dataclass(frozen=True, slots=True)
class FailureReason:
    """A reason why probes failed: the count by leg, and the first and the last minute."""

    code: str
    meaning: str
    failed_probes: Mapping[Leg, int]
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class BrokerDetail:
    """A broker's minutes; ``key_figures`` are sums over the span, ``reasons`` are the most frequent first."""

    grid: TimeGrid
    legs: tuple[LegTimeline, ...]
    key_figures: tuple[KeyFigure, ...]
    reasons: tuple[FailureReason, ...]


def build_broker_detail(rows: pa.Table, broker_id: int, span: Span) -> BrokerDetail:
    """Build the detail from the rows of both legs of the broker, which may be in any order."""
    grid, all_rows = make_grid(span), rows.to_pylist()
    by_leg = {leg: [row for row in all_rows if row["leg"] == leg] for leg in Leg}
    return BrokerDetail(
        grid,
        tuple(_leg(leg, by_leg[leg], grid) for leg in Leg),
        (
            *(_availability(leg, by_leg[leg]) for leg in Leg),
            _lost(by_leg[Leg.CLIENT]),
            _led_elsewhere(by_leg[Leg.CLIENT], broker_id),
        ),
        _reasons(all_rows),
    )


def select_broker_alerts(alerts: Sequence[HealthAlert], view: BrokerView) -> tuple[HealthAlert, ...]:
    """Return the broker's alerts, newest first."""
    broker = (view.cluster_id, view.broker_id)
    return tuple(alert for alert in alerts if (alert.cluster_id, alert.broker_id) == broker)


def _leg(leg: Leg, rows: Iterable[Row], grid: TimeGrid) -> LegTimeline:
    rows_by_step: dict[int, list[Row]] = {}
    for row in rows:
        rows_by_step.setdefault(grid.step_index(row["minute"].astimezone(UTC)), []).append(row)
    first_step = min(rows_by_step, default=0)
    rows_of_steps = [rows_by_step.get(i, []) for i in range(grid.size)]
    cells = [[row for row in step_rows if row["measured"]] for step_rows in rows_of_steps]
    # Failures count also in minutes with too few attempts to be measured; not those that are the agent's own.
    failures = [
        sum((Counter(_split_failures(row)[0]) for row in step_rows), Counter[str]())
        for step_rows in rows_of_steps
    ]
    return LegTimeline(
        leg,
        _worst("latency_p50_us", cells),
        _worst("latency_p99_us", cells),
        _worst("latency_p99_censored_us", cells),
        {
            code: tuple(step_failures[code] for step_failures in failures)
            for code in sorted(set().union(*failures) if failures else ())
        },
        merge_marked_steps(grid, [not cell and step >= first_step for step, cell in enumerate(cells)]),
    )


def _reasons(rows: Iterable[Row]) -> tuple[FailureReason, ...]:
    failures_by_code: dict[tuple[str, bool], list[tuple[Leg, datetime, int]]] = {}
    for row in rows:
        for is_counted, failures in zip((True, False), _split_failures(row), strict=True):
            for code, failed_count in failures.items():
                failures_by_code.setdefault((code, is_counted), []).append(
                    (Leg(row["leg"]), row["minute"].astimezone(UTC), failed_count)
                )
    reasons = [
        FailureReason(
            code,
            _describe_failure(code, is_counted),
            {leg: sum(failed_count for leg_of, _, failed_count in failures if leg_of is leg) for leg in Leg},
            min(at for _, at, _ in failures),
            max(at for _, at, _ in failures),
        )
        for (code, is_counted), failures in failures_by_code.items()
    ]
    return tuple(sorted(reasons, key=lambda reason: (-sum(reason.failed_probes.values()), reason.code)))


def _split_failures(row: Row) -> tuple[dict[str, int], dict[str, int]]:
    """Return a row's failures that count, and those by the agent's own fault."""
    return split_failures(dict(row["failures"] or ()), (row["attempted"] or 0) - (row["succeeded"] or 0))


def _describe_failure(code: str, is_counted: bool) -> str:
    """Return what a failure code means; a code of the agent's own counts where one broker refused alone."""
    fault = find_agent_fault(code)
    if fault is None:
        return _FAILURE_TEXTS.get(code, NO_VALUE)
    if is_counted:
        return "this broker refused while others accepted"
    return f"not measured: {fault.description}; {fault.remedy}"


def _worst(column: str, cells: Iterable[Sequence[Row]]) -> tuple[float | None, ...]:
    worst = (max((row[column] for row in cell if row[column] is not None), default=None) for cell in cells)
    return tuple(None if us is None else us / 1000 for us in worst)


def _availability(leg: Leg, rows: Sequence[Row]) -> KeyFigure:
    attempted = sum(row["attempted"] or 0 for row in rows)
    succeeded = sum(row["succeeded"] or 0 for row in rows)
    return KeyFigure(
        f"Availability, {leg} leg",
        format_percent(succeeded / attempted if attempted else None),
        None,
        (f"{succeeded:,} of {format_count(attempted, 'probe')} in the minutes shown",),
        "availability_ratio",
    )


def _lost(rows: Sequence[Row]) -> KeyFigure:
    lost, duplicated = (sum(row[name] or 0 for row in rows) for name in ("lost", "duplicated"))
    return KeyFigure(
        "Acknowledged, but lost", f"{lost:,}", None, (f"received twice: {duplicated:,}",), "lost"
    )


def _led_elsewhere(rows: Sequence[Row], broker_id: int) -> KeyFigure:
    """Return in how many minutes another broker led this broker's probe partition."""
    measured = [row for row in rows if row["measured"]]
    other_leaders = sorted(
        {leader for row in measured for leader in row["led_by"] or () if leader != broker_id}
    )
    minutes_elsewhere = sum(
        1 for row in measured if any(leader != broker_id for leader in row["led_by"] or ())
    )
    note = f"by {', '.join(f'broker {leader}' for leader in other_leaders)}" if other_leaders else NO_VALUE
    return KeyFigure(
        "Minutes led by other brokers", f"{minutes_elsewhere:,} of {len(measured):,}", None, (note,), "led_by"
    )
