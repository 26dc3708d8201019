"""The review's section on recovery: weekly readiness and RPO, and the drills."""

from collections.abc import Sequence

from fleetgauge_dashboards.report.markdown_blocks import MAX_ROWS, escape, format_rest, format_table
from fleetgauge_dashboards.times import TimeFormat
from fleetgauge_dashboards.units import format_count, format_number, format_percent
from fleetgauge_dashboards.views.drills import DrilledGroup
from fleetgauge_dashboards.views.recovery_weeks import (
    RecoveryWeek,
    format_metric_value,
    format_missed_value,
    format_quantile,
    metric_label,
    subject_kind,
)


def render_recovery_section(
    week: RecoveryWeek | None, drills: Sequence[DrilledGroup], times: TimeFormat
) -> list[str]:
    """Return the section as Markdown blocks, empty without recovery data."""
    blocks = [*(_render_week(week) if week else ()), *(_render_drills(drills, times) if drills else ())]
    return ["## Recovery readiness", *blocks] if blocks else []


def _render_week(week: RecoveryWeek) -> list[str]:
    blocks = []
    if week.over:
        headings = ("Over mirrors and groups", "Median >", "p90 >", "p99 >", "Of")
        rows = (
            (
                escape(metric_label(quantiles.metric)),
                *(
                    format_quantile(quantiles, value)
                    for value in (quantiles.median, quantiles.p90, quantiles.p99)
                ),
                f"{quantiles.subjects:,} {subject_kind(quantiles.metric)}",
            )
            for quantiles in week.over
        )
        blocks.append(format_table(headings, rows))
    if week.missed:
        headings = ("Missed its objective", "Metric", "Level >", "Objective >", "Coverage >")
        missed_rows = (
            (
                escape(missed.subject),
                escape(metric_label(missed.metric)),
                format_missed_value(missed),
                format_metric_value(missed.metric, missed.objective),
                format_percent(missed.coverage, 1),
            )
            for missed in week.missed[:MAX_ROWS]
        )
        blocks += [format_table(headings, missed_rows), *format_rest(len(week.missed) - MAX_ROWS)]
    elif week.judged:
        blocks.append(
            f"{week.judged:,} of {format_count(week.judged, 'objective')} of mirrors and groups met."
        )
    return blocks


def _render_drills(drills: Sequence[DrilledGroup], times: TimeFormat) -> list[str]:
    executed = sum(drill.executed for drill in drills)
    ready = sum(drill.ready for drill in drills)
    headings = (
        "Drilled",
        "Author",
        "Clusters",
        "Group",
        "Kind",
        "Verdict",
        "Read again, forecast >",
        "Measured >",
        "Missing >",
    )
    rows = (
        (
            times.format_instant(drill.at),
            escape(drill.author),
            escape(f"{drill.active} to {drill.passive}"),
            escape(drill.group_id),
            "executed" if drill.executed else "forecast",
            "READY" if drill.ready else escape(f"NOT READY: {', '.join(drill.reasons)}"),
            format_number(drill.replay_forecast),
            format_number(drill.replayed),
            format_number(drill.missing),
        )
        for drill in sorted(drills, key=lambda drill: not drill.executed)[:MAX_ROWS]
    )
    return [
        f"{format_count(len(drills), 'drill')} of consumer groups: {executed:,} executed, {ready:,} READY.",
        format_table(headings, rows),
        *format_rest(len(drills) - MAX_ROWS),
    ]
