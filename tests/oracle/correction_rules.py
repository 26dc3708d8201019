"""Corrections: the minutes and broker-minutes that are excluded from a cluster's weeks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.minute_rules import MINUTE, BrokerMinute, Row, compute_cluster_minute
from tests.oracle.settings import ClusterSettings, Settings

RECURRENCE_PERIODS = {"daily": timedelta(days=1), "weekly": timedelta(days=7)}
Correction = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A period in which a correction excludes a broker of a cluster; the whole cluster if that is None."""

    correction_id: str
    broker_id: int | None
    starts: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class CorrectedMinute:
    """A minute's row after corrections, None if it is excluded, and the corrections that changed it."""

    minute: datetime
    row: Row | None
    correction_ids: frozenset[str]


def find_occurrences(
    corrections: Iterable[Correction],
    cluster: ClusterSettings,
    settings: Settings,
    minutes: Sequence[datetime],
) -> list[Occurrence]:
    """Return the occurrences of the corrections that overlap the cluster's ascending minutes."""
    if not minutes:
        return []
    zone = ZoneInfo(settings.week_zone)
    return [
        Occurrence(
            correction["correction_id"],
            correction["broker_id"] if correction["scope"] == "broker" else None,
            starts,
            ends,
        )
        for correction in corrections
        if correction["withdrawn_at"] is None and _applies_to(correction, cluster)
        for starts, ends in _occurrence_times(correction, zone, minutes[-1])
        if starts < minutes[-1] + MINUTE and ends > minutes[0]
    ]


def _applies_to(correction: Correction, cluster: ClusterSettings) -> bool:
    if correction["scope"] == "segment":
        return (correction["segment"], correction["segment_value"]) in cluster.segments
    return bool(correction["cluster_id"] == cluster.cluster_id)


def _occurrence_times(
    correction: Correction, zone: ZoneInfo, last: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the start and end of each occurrence: once, or at the same local time each day or week."""
    starts, ends = correction["starts"], correction["ends"]
    yield starts, ends
    if correction["recurs"] is None:
        return
    period, until = RECURRENCE_PERIODS[correction["recurs"]], correction["recurs_until"]
    local_times = [moment.astimezone(zone).replace(tzinfo=None) for moment in (starts, ends)]
    while starts <= last:
        local_times = [moment + period for moment in local_times]
        starts, ends = (moment.replace(tzinfo=zone).astimezone(UTC) for moment in local_times)
        if until is not None and starts >= until:
            return
        yield starts, ends


def find_active(occurrences: Iterable[Occurrence], minute: datetime) -> list[Occurrence]:
    """Return the occurrences within which the minute starts."""
    return [occurrence for occurrence in occurrences if occurrence.starts <= minute < occurrence.ends]


def apply_corrections(
    brokers: Iterable[BrokerMinute], occurrences: Sequence[Occurrence]
) -> list[CorrectedMinute]:
    """Return every minute of a cluster, recomputed from the brokers that are not excluded."""
    by_minute: dict[datetime, list[BrokerMinute]] = defaultdict(list)
    for broker_minute in brokers:
        if broker_minute.row["leg"] == "client":
            by_minute[broker_minute.row["minute"]].append(broker_minute)
    return [
        _apply_to_minute(minute, by_minute[minute], find_active(occurrences, minute))
        for minute in sorted(by_minute)
    ]


def _apply_to_minute(
    minute: datetime, clients: Sequence[BrokerMinute], occurrences: Sequence[Occurrence]
) -> CorrectedMinute:
    expected = {broker_minute.row["broker_id"] for broker_minute in clients}
    effective = [
        occurrence
        for occurrence in occurrences
        if occurrence.broker_id is None or occurrence.broker_id in expected
    ]
    excluded_brokers = {occurrence.broker_id for occurrence in effective}
    remaining = (
        []
        if None in excluded_brokers
        else [
            broker_minute
            for broker_minute in clients
            if broker_minute.row["broker_id"] not in excluded_brokers
        ]
    )
    row = compute_cluster_minute(minute, remaining) if remaining else None
    return CorrectedMinute(minute, row, frozenset(occurrence.correction_id for occurrence in effective))
