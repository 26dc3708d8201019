"""What happened to a cluster in the minutes shown: findings, corrections, what was done on purpose."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from fleetgauge_core.slo.corrections import Correction, occurrences
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.views.actions import act
from fleetgauge_dashboards.views.alerts import Alert
from fleetgauge_dashboards.views.remarks import REMARKS

Row = Mapping[str, Any]
#: A label is read in passing.
LONGEST_LABEL = 48


class What(StrEnum):
    SUSPICION = "suspicion"
    FINDING = "finding"
    CORRECTION = "correction"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class Band:
    """A time in which something held, cut to the span shown."""

    span: Span
    label: str
    what: What


def found(alerts: Sequence[Alert], cluster_id: str, span: Span, now: datetime) -> tuple[Band, ...]:
    """The cluster's findings that touch the span, first sign and name apart; open ones until ``now``."""
    cut = []
    for alert in alerts:
        if alert.cluster_id != cluster_id:
            continue
        whom = alert.kind if alert.broker_id is None else f"{alert.kind} broker {alert.broker_id}"
        end = alert.cleared or now
        opened = alert.named.at if alert.named else end
        cut += [
            _cut(alert.began, opened, span, f"suspected {whom}", What.SUSPICION),
            _cut(opened, end, span, whom, What.FINDING),
        ]
    return tuple(band for band in cut if band)


def corrected(
    rows: Iterable[Row], cluster_id: str, segments: Set[tuple[str, str]], zone: str, span: Span
) -> tuple[Band, ...]:
    """What was taken out of the levels, by corrections that count."""
    cut = [
        _cut(starts, ends, span, _correction_label(one, row["reason"]), What.CORRECTION)
        for one, row in _counting(rows)
        if one.covers(cluster_id, segments)
        for starts, ends in occurrences(one, zone, span.start, span.end)
    ]
    return tuple(band for band in cut if band)


def left_out(
    rows: Iterable[Row], cluster_id: str, segments: Set[tuple[str, str]], zone: str, span: Span
) -> tuple[Span, ...]:
    """The stretches of the span that count for no broker of the cluster."""
    whole = [row for row in rows if row["broker_id"] is None]
    return tuple(band.span for band in corrected(whole, cluster_id, segments, zone, span))


def done(rows: Iterable[Row], cluster_id: str, span: Span, now: datetime) -> tuple[Band, ...]:
    """What was done on purpose: rolls, moves, throttles, what was done about a sick broker; until ``now``."""
    cut = []
    for row in rows:
        one = act(row)
        if row["cluster_id"] == cluster_id and row["kind"] not in REMARKS and one.was_done:
            end = row["ends"] or now
            whom = one.kind if one.broker_id is None else f"{one.kind} broker {one.broker_id}"
            cut.append(_cut(one.at, end, span, _shortened(f"{whom}, {one.author}"), What.ACTION))
    return tuple(band for band in cut if band)


def _counting(rows: Iterable[Row]) -> list[tuple[Correction, Row]]:
    names = [field.name for field in fields(Correction)]
    counting = [row for row in rows if row["withdrawn_at"] is None]
    return [(Correction(**{name: row[name] for name in names}), row) for row in counting]


def _correction_label(one: Correction, reason: str) -> str:
    whom = "" if one.broker_id is None else f"broker {one.broker_id}: "
    return _shortened(f"not counted, {whom}{reason}")


def _shortened(words: str) -> str:
    return words if len(words) <= LONGEST_LABEL else f"{words[: LONGEST_LABEL - 1]}…"


def _cut(starts: datetime, ends: datetime, span: Span, label: str, what: What) -> Band | None:
    start, end = max(starts.astimezone(UTC), span.start), min(ends.astimezone(UTC), span.end)
    return Band(Span(start, end), label, what) if start < end else None
