"""Mark what happened to a cluster in the minutes shown: findings, corrections, actions and changes."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from fleetgauge_core.slo.corrections import Correction, find_occurrences
from fleetgauge_core.tables import REMARK_KINDS, REPORTED_KINDS, ChangeKind, ChangePhase
from fleetgauge_dashboards.links import Span
from fleetgauge_dashboards.views.actions import parse_action
from fleetgauge_dashboards.views.alerts import HealthAlert

Row = Mapping[str, Any]
#: Longer labels are shortened, so that neighbouring labels stay legible.
LONGEST_LABEL = 48
#: A moment is as wide as a minute.
_LEAST_WIDTH = timedelta(minutes=1)
_NEXT_RESTART_WITHIN = timedelta(minutes=10)


class BandKind(StrEnum):
    """What a band stands for."""

    SUSPICION = "suspicion"
    FINDING = "finding"
    CORRECTION = "correction"
    ACTION = "action"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Band:
    """A period in which something held, cut to the span shown."""

    span: Span
    label: str
    kind: BandKind


def finding_bands(
    alerts: Sequence[HealthAlert], cluster_id: str, span: Span, now: datetime
) -> tuple[Band, ...]:
    """Return the cluster's alerts that touch the span, split into suspicion and finding.

    Open alerts end at ``now``.
    """
    bands = []
    for alert in alerts:
        if alert.cluster_id != cluster_id:
            continue
        subject = alert.kind if alert.broker_id is None else f"{alert.kind} broker {alert.broker_id}"
        end = alert.cleared_at or now
        opened_at = alert.opening_event.at if alert.opening_event else end
        bands += [
            _clip_band(alert.first_sign_at, opened_at, span, f"suspected {subject}", BandKind.SUSPICION),
            _clip_band(opened_at, end, span, subject, BandKind.FINDING),
        ]
    return tuple(band for band in bands if band)


def correction_bands(
    rows: Iterable[Row], cluster_id: str, segments: Set[tuple[str, str]], zone: str, span: Span
) -> tuple[Band, ...]:
    """Return the periods that corrections exclude from the service levels.

    Withdrawn corrections do not count.
    """
    bands = [
        _clip_band(starts, ends, span, _correction_label(correction, row["reason"]), BandKind.CORRECTION)
        for correction, row in _active_corrections(rows)
        if correction.applies_to(cluster_id, segments)
        for starts, ends in find_occurrences(correction, zone, span.start, span.end)
    ]
    return tuple(band for band in bands if band)


def excluded_spans(
    rows: Iterable[Row], cluster_id: str, segments: Set[tuple[str, str]], zone: str, span: Span
) -> tuple[Span, ...]:
    """Return the parts of the span that count for no broker of the cluster."""
    cluster_wide = [row for row in rows if row["broker_id"] is None]
    return tuple(band.span for band in correction_bands(cluster_wide, cluster_id, segments, zone, span))


def action_bands(rows: Iterable[Row], cluster_id: str, span: Span, now: datetime) -> tuple[Band, ...]:
    """Return the actions on the cluster, such as rolls, reassignments and mitigations.

    Actions that have not ended end at ``now``.
    """
    bands = []
    for row in rows:
        action = parse_action(row)
        if row["cluster_id"] == cluster_id and row["kind"] not in REMARK_KINDS and action.has_effect:
            end = row["ends"] or now
            subject = action.kind if action.broker_id is None else f"{action.kind} broker {action.broker_id}"
            bands.append(
                _clip_band(action.at, end, span, _shorten(f"{subject}, {action.author}"), BandKind.ACTION)
            )
    return tuple(band for band in bands if band)


def change_bands(
    rows: Iterable[Row], cluster_id: str, segments: Set[tuple[str, str]], span: Span, now: datetime
) -> tuple[Band, ...]:
    """Return the changes of the cluster, and of its segments, that may explain minutes.

    Restarts that follow each other are one band. Changes that have not ended end at ``now``. Reports that
    were withdrawn are left out.
    """
    latest = {row["change_id"]: row for row in sorted(rows, key=lambda row: row["at"])}
    of_cluster = sorted(
        (
            row
            for row in latest.values()
            if (row["cluster_id"] == cluster_id or (row["segment"], row["segment_value"]) in segments)
            and not _is_withdrawn(row)
        ),
        key=lambda row: row["starts"],
    )
    restarts = [row for row in of_cluster if row["kind"] == ChangeKind.BROKER_RESTARTED]
    others = [row for row in of_cluster if row["kind"] != ChangeKind.BROKER_RESTARTED]
    bands = [
        *(_restart_band(group, span) for group in _group_restarts(restarts)),
        *(
            _clip_band(
                row["starts"],
                max(row["ends"] or now, row["starts"] + _LEAST_WIDTH),
                span,
                _change_label(row),
                BandKind.CHANGE,
            )
            for row in others
        ),
    ]
    return tuple(band for band in bands if band)


def _is_withdrawn(row: Row) -> bool:
    return row["kind"] in REPORTED_KINDS and row["phase"] == ChangePhase.CANCELLED


def _group_restarts(restarts: Iterable[Row]) -> list[list[Row]]:
    groups: list[list[Row]] = []
    for row in restarts:
        if groups and row["starts"] - groups[-1][-1]["starts"] <= _NEXT_RESTART_WITHIN:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _restart_band(restarts: Sequence[Row], span: Span) -> Band | None:
    brokers = sorted({row["broker_id"] for row in restarts})
    names = f"broker {brokers[0]}" if len(brokers) == 1 else f"brokers {', '.join(map(str, brokers))}"
    starts, ends = restarts[0]["starts"], max(row["ends"] or row["starts"] for row in restarts)
    label = _shorten(f"restart of {names}")
    return _clip_band(starts, max(ends, starts + _LEAST_WIDTH), span, label, BandKind.CHANGE)


def _change_label(row: Row) -> str:
    broker = "" if row["broker_id"] is None else f" broker {row['broker_id']}"
    title = f": {row['title']}" if row["title"] else ""
    return _shorten(f"{row['kind'].replace('_', ' ')}{broker}{title}")


def _active_corrections(rows: Iterable[Row]) -> list[tuple[Correction, Row]]:
    names = [field.name for field in fields(Correction)]
    active = [row for row in rows if row["withdrawn_at"] is None]
    return [(Correction(**{name: row[name] for name in names}), row) for row in active]


def _correction_label(correction: Correction, reason: str) -> str:
    broker = "" if correction.broker_id is None else f"broker {correction.broker_id}: "
    return _shorten(f"excluded, {broker}{reason}")


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _clip_band(starts: datetime, ends: datetime, span: Span, label: str, kind: BandKind) -> Band | None:
    start, end = max(starts.astimezone(UTC), span.start), min(ends.astimezone(UTC), span.end)
    return Band(Span(start, end), label, kind) if start < end else None
