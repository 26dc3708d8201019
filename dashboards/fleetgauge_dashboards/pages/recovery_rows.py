"""What the page of another region is filled from, and the numbers behind its parts."""

from dataclasses import asdict

import pyarrow as pa

from fleetgauge_core import tables
from fleetgauge_dashboards.links import RecoveryView, Span, Window
from fleetgauge_dashboards.pages.page import Context, Part, Rows
from fleetgauge_dashboards.reader.recovery import RPO_MINUTE
from fleetgauge_dashboards.views.drills import DrilledGroup
from fleetgauge_dashboards.views.findings import OpenFinding
from fleetgauge_dashboards.views.groups import GroupNow
from fleetgauge_dashboards.views.mirrors import MirrorNow
from fleetgauge_dashboards.views.recovery import Recovery, recovery
from fleetgauge_dashboards.views.recovery_freshness import Told, oldest_minute
from fleetgauge_dashboards.views.rpo import rpo_span


def recovery_now(context: Context) -> Recovery:
    fleet = context.fleet
    return recovery(context.lake.recovery, fleet.mirrors, fleet.pairs, fleet.regions, context.clock())


def rpo_minutes(view: RecoveryView, context: Context) -> pa.Table:
    return context.lake.recovery.rpo_minutes(7 if view.window is Window.WEEK else 1)


def shown_span(view: RecoveryView, told: Told, context: Context, minutes: pa.Table) -> Span:
    return rpo_span(view.window, told, context.clock(), oldest_minute(minutes))


_FAILOVER = (
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


def _failover_rows(_view: RecoveryView, context: Context) -> Rows:
    """One line a pair."""
    lines = [
        (
            one.evidence.active,
            one.evidence.passive,
            one.answer.value,
            one.because,
            one.evidence.told.until,
            one.evidence.groups,
            one.evidence.ready,
            one.evidence.replay_at_most,
            one.evidence.lost_at_most,
            one.evidence.rto_ms,
            {mirror.source: mirror.state.value for mirror in one.evidence.mirrors},
            [
                f"{at.vantage}: {at.acknowledged} of {at.sent} into {at.cluster_id}"
                for at in one.evidence.producers
            ],
            one.evidence.headroom,
            dict(one.evidence.reasons),
            len(one.evidence.findings),
            one.evidence.last_drill and one.evidence.last_drill.at,
            one.evidence.last_drill and one.evidence.last_drill.is_ready,
        )
        for one in recovery_now(context).failovers
    ]
    return Rows(_FAILOVER, [dict(zip(_FAILOVER, line, strict=True)) for line in lines])


def _finding_rows(_view: RecoveryView, context: Context) -> Rows:
    return Rows(OpenFinding.__slots__, [asdict(one) for one in recovery_now(context).findings])


def _mirror_rows(_view: RecoveryView, context: Context) -> Rows:
    return Rows(MirrorNow.__slots__, [asdict(one) for one in recovery_now(context).mirrors])


def _rpo_rows(view: RecoveryView, context: Context) -> Rows:
    """Every minute of the span, where the chart has the worst of each step."""
    minutes, until = rpo_minutes(view, context), recovery_now(context).told
    span = shown_span(view, until, context, minutes)
    held = [row for row in minutes.to_pylist() if span.start <= row["minute"] < span.end]
    held.sort(key=lambda row: (row["source"], row["destination"], row["minute"]))
    return Rows(RPO_MINUTE, held)


def _group_rows(_view: RecoveryView, context: Context) -> Rows:
    return Rows(GroupNow.__slots__, [asdict(one) for one in recovery_now(context).groups])


def _drill_rows(_view: RecoveryView, context: Context) -> Rows:
    return Rows(DrilledGroup.__slots__, [asdict(one) for one in recovery_now(context).drills])


def _week_rows(_view: RecoveryView, context: Context) -> Rows:
    found = context.lake.recovery.weeks()
    found = sorted(found, key=lambda row: (row["week"], row["scope"], row["metric"], row["subject"] or ""))
    return Rows(tables.RECOVERY_WEEKS.names, found)


PARTS = (
    Part("failovers", "Fail over now?", _failover_rows),
    Part("findings", "Open findings", _finding_rows, has_tools=False),
    Part("mirrors", "Mirrors now", _mirror_rows),
    Part("rpo", "RPO by minute", _rpo_rows),
    Part("groups", "Groups, worst first", _group_rows),
    Part("drills", "Drills, newest first", _drill_rows),
    Part("weeks", "Weeks of mirrors and groups", _week_rows),
)
