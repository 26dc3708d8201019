"""What `fleetgauge slo` does: show the service levels of a week."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.table import Column, Table
from rich.text import Text

from fleetgauge_core import tables
from fleetgauge_core.fleet import WHOLE_FLEET
from fleetgauge_core.runtime.console import console, print_table
from fleetgauge_core.slo.change_causes import Segments
from fleetgauge_dashboards.reader import LakeReader, column, read_once
from fleetgauge_dashboards.reader.recency import compute_recency
from fleetgauge_dashboards.terminal.lake_source import LakeSource, resolve_source, select_week
from fleetgauge_dashboards.terminal.output import open_console, write_csv, write_json
from fleetgauge_dashboards.terminal.week_without import compute_week_without, find_left_out_minutes
from fleetgauge_dashboards.units import (
    format_count,
    format_duration,
    format_instant,
    format_milliseconds,
    format_minutes,
    format_percent,
)
from fleetgauge_dashboards.views.cluster_budgets import (
    BurnStatus,
    Row,
    availability_left_minutes,
    compute_burns,
    select_latest_revisions,
    smallest_budget_share_left,
    sort_clusters_worst_first,
)
from fleetgauge_dashboards.views.fleet import CLUSTERS_FOR_A_P99, format_metric
from fleetgauge_dashboards.views.freshness import DataAge, Freshness, assess_freshness

_BURN_FIELDS = tuple(field.name for field in fields(BurnStatus))
_NUMBER_HEADINGS = (
    "latency p99",
    "p99 with failures",
    "bad minutes",
    "budget left",
    "availability",
    "availability p99",
    "budget left",
    "coverage",
)
_BURN_HEADINGS = ("burn rate 1h, 6h", "burn alerts")
_METRICS = ("latency_p99_us", "availability_p99", "availability_ratio", "latency_budget_left_minutes")


@dataclass(frozen=True, slots=True)
class _WeekLevels:
    """The service levels of a week, and burn rates if the week is open."""

    week: date
    freshness: Freshness
    fleet: Sequence[Row]
    clusters: Sequence[Row]
    burns: Mapping[str, BurnStatus]
    left_out: Mapping[str, int] | None = None
    """How many minutes of each cluster are left out; None if none are to be."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each cluster's week with its burn rates, which are None for a week that is not open."""
        no_burn = dict.fromkeys(_BURN_FIELDS)
        return [
            {**row, **(asdict(burn) if (burn := self.burns.get(row["cluster_id"])) else no_burn)}
            for row in self.clusters
        ]


def show_levels(
    week: datetime | None,
    without: str | None,
    config: Path | None,
    location: str | None,
    form: str | None,
) -> None:
    """Print the service levels of a week, or those ``without`` what a cause or an ID explains.

    Raises: InputError without such a week, or if nothing is explained; LakeError.
    """
    source = resolve_source(location, config)
    with console.status("reading the lake"):
        levels = _read_levels(source, week, datetime.now(UTC))
        if without is not None:
            levels = _leave_out(source, levels, without)
    if form == "json":
        age = levels.freshness.age
        write_json(
            {
                "week": levels.week,
                "age_s": None if age is None else age.total_seconds(),
                "fleet": levels.fleet,
                "clusters": levels.rows,
            }
            | ({} if levels.left_out is None else {"without": without, "left_out": levels.left_out})
        )
    elif form == "csv":
        write_csv((*tables.CLUSTER_WEEKS.column_names, *_BURN_FIELDS), levels.rows)
    else:
        _print_levels(source, levels)


def _read_levels(source: LakeSource, day: datetime | None, now: datetime) -> _WeekLevels:
    lake = LakeReader(source.lake)
    all_rows = read_once(source.lake, tables.CLUSTER_WEEKS).to_pylist()
    weeks = {row["week"] for row in all_rows}
    week = select_week(sorted(weeks), day, source.lake)
    clusters = sort_clusters_worst_first(select_latest_revisions(all_rows, week, ["cluster_id"]))
    # A label of clusters may be called `fleet`, too.
    of_fleet = (column("segment") == WHOLE_FLEET[0]) & (column("segment_value") == WHOLE_FLEET[1])
    is_whole_fleet = (column("week") == week) & of_fleet
    fleet = select_latest_revisions(
        read_once(source.lake, tables.FLEET_WEEKS, is_whole_fleet).to_pylist(), week, ["metric"]
    )
    recent = lake.burn_minutes()
    freshness = assess_freshness(compute_recency(recent), now)
    is_current = week == max(weeks)
    open_rows = [row for row in clusters if is_current and not row["closed"]]
    burns = compute_burns(recent, open_rows, now, source.burn_alerts.windows)
    return _WeekLevels(week, freshness, sorted(fleet, key=_metric_order), clusters, burns)


def _leave_out(source: LakeSource, levels: _WeekLevels, name: str) -> _WeekLevels:
    """Return the levels as they would be, worst first; burn rates are those that there were."""
    # Without a fleet file it is only known that a cluster belongs to the whole fleet.
    segments: dict[str, Segments] = {row["cluster_id"]: (WHOLE_FLEET,) for row in levels.clusters}
    if source.fleet:
        segments = {cluster.id: cluster.segments for cluster in source.fleet.clusters}
    minutes = find_left_out_minutes(source, name, segments)
    computed = compute_week_without(source, levels.week, levels.clusters, levels.fleet, minutes)
    return replace(
        levels,
        clusters=sort_clusters_worst_first(computed.clusters),
        fleet=computed.fleet,
        left_out=computed.left_out,
    )


def _metric_order(row: Row) -> int:
    return _METRICS.index(row["metric"]) if row["metric"] in _METRICS else len(_METRICS)


def _print_levels(source: LakeSource, levels: _WeekLevels) -> None:
    output = open_console()
    output.print(_format_age(source, levels.freshness), soft_wrap=True)
    output.print(f"Week {levels.week}, {_format_state(levels.clusters)}", soft_wrap=True)
    if levels.left_out is not None:
        output.print(_format_left_out(levels.left_out), soft_wrap=True)
    print_table(output, _fleet_table(levels.fleet))
    print_table(output, _cluster_table(levels))


def _format_age(source: LakeSource, freshness: Freshness) -> Text:
    if freshness.until is None or freshness.age is None:
        return Text(f"{source.name}: no measured minute in the last days", "red")
    text = (
        f"{source.name}: data until {format_instant(freshness.until)}, {format_duration(freshness.age)} ago"
    )
    text += f", coverage of its last hour {format_percent(freshness.coverage, 1)}"
    return Text(f"{text}  STALE" if freshness.state is DataAge.STALE else text, _AGE_STYLES[freshness.state])


_AGE_STYLES = {DataAge.NONE: "red", DataAge.STALE: "bold red", DataAge.FRESH: "green", DataAge.ENDED: "dim"}


def _format_state(clusters: Sequence[Row]) -> str:
    return "closed" if clusters and all(row["closed"] for row in clusters) else "open, to date"


def _format_left_out(left_out: Mapping[str, int]) -> str:
    if not left_out:
        return "no minute is left out: it explains none of this week"
    minutes = ", ".join(f"{name} {count:,}" for name, count in sorted(left_out.items()))
    return f"as it would have been without these minutes: {minutes}"


def _fleet_table(fleet: Sequence[Row]) -> Table:
    quantiles = ("median", "p90", "p99")
    table = Table("fleet", *(Column(name, justify="right") for name in quantiles), "clusters", box=SIMPLE)
    for row in fleet:
        table.add_row(
            row["metric"],
            *(format_metric(row["metric"], row[name]) for name in quantiles),
            _describe_sample(row),
        )
    return table


def _describe_sample(row: Row) -> str:
    text = f"{row['clusters']:,} included"
    if row["clusters_excluded"]:
        text += f", {row['clusters_excluded']:,} excluded (coverage below 90%)"
    is_small_sample = 0 < row["clusters"] < CLUSTERS_FOR_A_P99
    return (
        f"{text}; p99 is the worst of {format_count(row['clusters'], 'cluster')}" if is_small_sample else text
    )


def _cluster_table(levels: _WeekLevels) -> Table:
    has_burns = bool(levels.burns)
    table = Table(
        "cluster", "week", *(Column(name, justify="right") for name in _NUMBER_HEADINGS), box=SIMPLE
    )
    for name in _BURN_HEADINGS if has_burns else ():
        table.add_column(name)
    for row in levels.clusters:
        burn = levels.burns.get(row["cluster_id"])
        cells = _format_cells(row) + (_format_burn(burn) if has_burns else [])
        table.add_row(*cells, style="red" if smallest_budget_share_left(row) < 0 else None)
    return table


def _format_cells(row: Row) -> list[str]:
    return [
        row["cluster_id"],
        f"closed, r{row['revision']}" if row["closed"] else "open",
        format_milliseconds(row["latency_p99_us"]),
        format_milliseconds(row["latency_p99_censored_us"]),
        f"{row['bad_minutes']:,}",
        format_minutes(row["latency_budget_left_minutes"]),
        format_percent(row["availability_ratio"]),
        format_percent(row["availability_p99"], 2),
        format_minutes(availability_left_minutes(row)),
        format_percent(row["coverage"], 2),
    ]


def _format_burn(burn: BurnStatus | None) -> list[str]:
    if burn is None:
        return ["–"] * len(_BURN_HEADINGS)
    alerts = [f"▲ {name}" for name in burn.alerts_firing]
    if burn.alerts_frozen:
        alerts.append(f"◌ {len(burn.alerts_frozen)} frozen")
    latency = _format_burn_rates(burn.latency_burn_1h, burn.latency_burn_6h)
    availability = _format_burn_rates(burn.availability_burn_1h, burn.availability_burn_6h)
    return [f"latency {latency}\navailability {availability}", "\n".join(alerts)]


def _format_burn_rates(one_hour: float | None, six_hours: float | None) -> str:
    return ", ".join("–" if burn is None else f"{burn:.1f}x" for burn in (one_hour, six_hours))
