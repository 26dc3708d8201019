"""Read what the recovery page shows, and the rows behind its parts."""

from dataclasses import asdict

import pyarrow as pa

from fleetgauge_core import tables
from fleetgauge_dashboards.links import RecoveryView, Span, Window
from fleetgauge_dashboards.pages.page import PageContext, PagePart, TableRows
from fleetgauge_dashboards.reader.recovery import RPO_MINUTE_COLUMNS
from fleetgauge_dashboards.views.drills import DrilledGroup
from fleetgauge_dashboards.views.findings import OpenFinding
from fleetgauge_dashboards.views.groups import GroupReadiness
from fleetgauge_dashboards.views.mirrors import MirrorLag
from fleetgauge_dashboards.views.recovery import RecoveryOverview, build_recovery_overview
from fleetgauge_dashboards.views.recovery_freshness import RecoveryFreshness, oldest_minute
from fleetgauge_dashboards.views.rpo import resolve_rpo_span


def read_overview(context: PageContext) -> RecoveryOverview:
    """Return the current state of recovery."""
    fleet = context.fleet
    return build_recovery_overview(
        context.lake.recovery, fleet.mirrors, fleet.pairs, fleet.regions, context.clock()
    )


def read_rpo_minutes(view: RecoveryView, context: PageContext) -> pa.Table:
    """Return the mirrors' RPO minutes of the last day, or of the last 7 days for a view of a week."""
    return context.lake.recovery.rpo_minutes(7 if view.window is Window.WEEK else 1)


def resolve_span(
    view: RecoveryView, freshness: RecoveryFreshness, context: PageContext, minutes: pa.Table
) -> Span:
    """Return the time range of the RPO chart."""
    return resolve_rpo_span(view.window, freshness, context.clock(), oldest_minute(minutes))


_FAILOVER_COLUMNS = (
    "active",
    "passive",
    "answer",
    "because",
    "told_until",
    "groups",
    "groups_ready",
    "replay_at_most",
    "lost_at_most",
    "rto_ms",
    "mirrors",
    "producers",
    "headroom",
    "reasons",
    "open_findings",
    "last_drill_at",
    "last_drill_ready",
)


def _read_failover_rows(_view: RecoveryView, context: PageContext) -> TableRows:
    """Return assessment row per pair of clusters."""
    rows = [
        (
            assessment.evidence.active,
            assessment.evidence.passive,
            assessment.answer.value,
            assessment.explanation,
            assessment.evidence.freshness.until,
            assessment.evidence.groups,
            assessment.evidence.ready,
            assessment.evidence.replay_at_most,
            assessment.evidence.lost_at_most,
            assessment.evidence.rto_ms,
            {mirror.source: mirror.state.value for mirror in assessment.evidence.mirrors},
            [
                f"{producer.vantage}: {producer.acknowledged} of {producer.sent} to {producer.cluster_id}"
                for producer in assessment.evidence.producers
            ],
            assessment.evidence.headroom,
            dict(assessment.evidence.reasons),
            len(assessment.evidence.findings),
            assessment.evidence.last_drill and assessment.evidence.last_drill.at,
            assessment.evidence.last_drill and assessment.evidence.last_drill.is_ready,
        )
        for assessment in read_overview(context).failovers
    ]
    return TableRows(_FAILOVER_COLUMNS, [dict(zip(_FAILOVER_COLUMNS, row, strict=True)) for row in rows])


def _read_finding_rows(_view: RecoveryView, context: PageContext) -> TableRows:
    return TableRows(OpenFinding.__slots__, [asdict(finding) for finding in read_overview(context).findings])


def _read_mirror_rows(_view: RecoveryView, context: PageContext) -> TableRows:
    return TableRows(MirrorLag.__slots__, [asdict(mirror) for mirror in read_overview(context).mirrors])


def _read_rpo_rows(view: RecoveryView, context: PageContext) -> TableRows:
    """Return every minute of the time range; the chart shows the worst of each step."""
    minutes, freshness = read_rpo_minutes(view, context), read_overview(context).freshness
    span = resolve_span(view, freshness, context, minutes)
    rows = [row for row in minutes.to_pylist() if span.start <= row["minute"] < span.end]
    rows.sort(key=lambda row: (row["source"], row["destination"], row["minute"]))
    return TableRows(RPO_MINUTE_COLUMNS, rows)


def _read_group_rows(_view: RecoveryView, context: PageContext) -> TableRows:
    return TableRows(GroupReadiness.__slots__, [asdict(group) for group in read_overview(context).groups])


def _read_drill_rows(_view: RecoveryView, context: PageContext) -> TableRows:
    return TableRows(DrilledGroup.__slots__, [asdict(drill) for drill in read_overview(context).drills])


def _read_week_rows(_view: RecoveryView, context: PageContext) -> TableRows:
    rows = sorted(
        context.lake.recovery.weeks(),
        key=lambda row: (row["week"], row["scope"], row["metric"], row["subject"] or ""),
    )
    return TableRows(tables.RECOVERY_WEEKS.column_names, rows)


PARTS = (
    PagePart("failovers", "Fail over now?", _read_failover_rows),
    PagePart("findings", "Open findings", _read_finding_rows, has_tools=False),
    PagePart("mirrors", "Mirrors", _read_mirror_rows),
    PagePart("rpo", "RPO by minute", _read_rpo_rows),
    PagePart("groups", "Consumer groups, worst first", _read_group_rows),
    PagePart("drills", "Drills, newest first", _read_drill_rows),
    PagePart("weeks", "Weekly objectives of mirrors and groups", _read_week_rows),
)
