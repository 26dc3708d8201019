"""Corrections: which minutes and broker-minutes are taken out of a cluster's weeks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.minute_rules import MINUTE, BrokerMinute, Row, cluster_minute
from tests.oracle.settings import ClusterSettings, Settings

EVERY = {"daily": timedelta(days=1), "weekly": timedelta(days=7)}
Correction = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One time at which a correction holds for a cluster: for one broker of it, or (None) for all of it."""

    correction_id: str
    broker_id: int | None
    starts: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class Corrected:
    """A minute as it counts (None: not at all), and whose corrections took something of it."""

    minute: datetime
    row: Row | None
    correction_ids: frozenset[str]


def occurrences(
    corrections: Iterable[Correction],
    cluster: ClusterSettings,
    settings: Settings,
    minutes: Sequence[datetime],
) -> list[Occurrence]:
    """Those that touch the ascending minutes of the cluster."""
    if not minutes:
        return []
    zone = ZoneInfo(settings.week_zone)
    return [
        Occurrence(one["correction_id"], one["broker_id"] if one["scope"] == "broker" else None, starts, ends)
        for one in corrections
        if one["withdrawn_at"] is None and _is_about(one, cluster)
        for starts, ends in _times(one, zone, minutes[-1])
        if starts < minutes[-1] + MINUTE and ends > minutes[0]
    ]


def _is_about(correction: Correction, cluster: ClusterSettings) -> bool:
    if correction["scope"] == "segment":
        return (correction["segment"], correction["segment_value"]) in cluster.segments
    return bool(correction["cluster_id"] == cluster.cluster_id)


def _times(correction: Correction, zone: ZoneInfo, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Once, or at the same time on the wall's clock on the following days or weeks."""
    starts, ends = correction["starts"], correction["ends"]
    yield starts, ends
    if correction["recurs"] is None:
        return
    every, until = EVERY[correction["recurs"]], correction["recurs_until"]
    on_the_wall = [moment.astimezone(zone).replace(tzinfo=None) for moment in (starts, ends)]
    while starts <= last:
        on_the_wall = [moment + every for moment in on_the_wall]
        starts, ends = (moment.replace(tzinfo=zone).astimezone(UTC) for moment in on_the_wall)
        if until is not None and starts >= until:
            return
        yield starts, ends


def holding(times: Iterable[Occurrence], minute: datetime) -> list[Occurrence]:
    """Those inside of which the minute starts."""
    return [one for one in times if one.starts <= minute < one.ends]


def corrected(brokers: Iterable[BrokerMinute], times: Sequence[Occurrence]) -> list[Corrected]:
    """Every minute of one cluster, made again from the brokers that are left."""
    by_minute: dict[datetime, list[BrokerMinute]] = defaultdict(list)
    for one in brokers:
        if one.row["leg"] == "client":
            by_minute[one.row["minute"]].append(one)
    return [_corrected(minute, by_minute[minute], holding(times, minute)) for minute in sorted(by_minute)]


def _corrected(minute: datetime, clients: Sequence[BrokerMinute], times: Sequence[Occurrence]) -> Corrected:
    expected = {one.row["broker_id"] for one in clients}
    taking = [one for one in times if one.broker_id is None or one.broker_id in expected]
    of_brokers = {one.broker_id for one in taking}
    left = [] if None in of_brokers else [one for one in clients if one.row["broker_id"] not in of_brokers]
    row = cluster_minute(minute, left) if left else None
    return Corrected(minute, row, frozenset(one.correction_id for one in taking))
