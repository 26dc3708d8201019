"""The review's section on another region: how ready it was in the week, and how drills went."""

from collections.abc import Sequence

from fleetgauge_dashboards.report.blocks import ROWS, more, table, text
from fleetgauge_dashboards.times import Times
from fleetgauge_dashboards.units import NOTHING, count, percent
from fleetgauge_dashboards.views.drills import DrilledGroup
from fleetgauge_dashboards.views.recovery_weeks import RecoveryWeek, held, level, measured, named, whose


def another_region(week: RecoveryWeek | None, drills: Sequence[DrilledGroup], times: Times) -> list[str]:
    """Nothing where nothing is told of one."""
    found = [*(_week(week) if week else ()), *(_drills(drills, times) if drills else ())]
    return ["## Ready for another region", *found] if found else []


def _week(week: RecoveryWeek) -> list[str]:
    found = []
    if week.over:
        heads = ("Over mirrors and groups", "Median >", "p90 >", "p99 >", "Of")
        rows = (
            (
                text(named(one.metric)),
                *(level(one, value) for value in (one.median, one.p90, one.p99)),
                f"{one.subjects:,} {whose(one.metric)}",
            )
            for one in week.over
        )
        found.append(table(heads, rows))
    if week.missed:
        heads = ("Missed its objective", "Metric", "Level >", "Objective >", "Coverage >")
        missed = (
            (
                text(one.subject),
                text(named(one.metric)),
                held(one),
                measured(one.metric, one.objective),
                percent(one.coverage, 1),
            )
            for one in week.missed[:ROWS]
        )
        found += [table(heads, missed), *more(len(week.missed) - ROWS)]
    elif week.judged:
        found.append(f"{week.judged:,} of {count(week.judged, 'objective')} of mirrors and groups kept.")
    return found


def _drills(drills: Sequence[DrilledGroup], times: Times) -> list[str]:
    executed = sum(one.executed for one in drills)
    ready = sum(one.ready for one in drills)
    heads = (
        "Drilled",
        "By",
        "From, to",
        "Group",
        "How",
        "Verdict",
        "Read again, forecast >",
        "Measured >",
        "Missing >",
    )
    rows = (
        (
            times.instant(one.at),
            text(one.author),
            text(f"{one.active} to {one.passive}"),
            text(one.group_id),
            "executed" if one.executed else "forecast",
            "READY" if one.ready else text(f"NOT READY: {', '.join(one.reasons)}"),
            _records(one.replay_forecast),
            _records(one.replayed),
            _records(one.missing),
        )
        for one in sorted(drills, key=lambda one: not one.executed)[:ROWS]
    )
    return [
        f"{count(len(drills), 'drill')} of a group: {executed:,} executed, {ready:,} READY.",
        table(heads, rows),
        *more(len(drills) - ROWS),
    ]


def _records(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"
