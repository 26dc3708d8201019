"""What `fleetgauge compare` does: compare groups of clusters, or clusters before and after a change."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from random import Random
from typing import Any

from rich.box import SIMPLE
from rich.table import Column, Table

from fleetgauge_core import tables
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_core.runtime.console import console, print_table
from fleetgauge_core.slo.comparison import MIN_INTERVAL_CLUSTERS
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.terminal.lake_source import LakeSource, resolve_source, select_week
from fleetgauge_dashboards.terminal.output import open_console, write_csv, write_json
from fleetgauge_dashboards.units import format_count, format_milliseconds, format_minutes, format_percent
from fleetgauge_dashboards.views.cluster_budgets import select_latest_revisions
from fleetgauge_dashboards.views.comparison import (
    BEFORE_AND_AFTER,
    ClusterComparison,
    Row,
    compare_before_and_after,
    compare_cluster_groups,
)

#: A fixed seed: the same comparison of the same lake gives the same interval.
_SEED = 0


@dataclass(frozen=True, slots=True)
class _GroupComparison:
    """A comparison of the clusters with two values of a label, over the newest closed weeks."""

    label: str
    values: tuple[str, str]
    weeks: int


@dataclass(frozen=True, slots=True)
class _BeforeAfterComparison:
    """A comparison of the same clusters in two weeks: of all clusters, or of those with a label's value."""

    before: datetime
    after: datetime
    label_value: tuple[str, str] | None


def compare_clusters(
    by: str | None,
    metric: str,
    weeks: int,
    before: datetime | None,
    after: datetime | None,
    config: Path | None,
    location: str | None,
    form: str | None,
) -> None:
    """Print the difference of two groups of clusters, or of two weeks. Raises: InputError; LakeError."""
    comparison = _parse_comparison(by, weeks, before, after)
    source = resolve_source(location, config)
    with console.status("comparing"):
        rows = _newest_revisions(source.lake)
        random = Random(_SEED)
        if isinstance(comparison, _GroupComparison):
            result = _compare_groups(source, rows, metric, comparison, random)
        else:
            result = _compare_before_after(source, rows, metric, comparison, random)
    if form == "json":
        write_json(_to_json(result, metric, by))
    elif form == "csv":
        write_csv(("side", "cluster_id", metric), _to_rows(result, metric))
    else:
        _print(source, result, metric)


def _parse_comparison(
    by: str | None, weeks: int, before: datetime | None, after: datetime | None
) -> _GroupComparison | _BeforeAfterComparison:
    """Return the requested comparison.

    Raises: InputError for missing or conflicting options.
    """
    label, _, listed = (by or "").partition("=")
    values = [value for value in listed.split(",") if value]
    if before and after:
        if by and not (label and len(values) == 1):
            raise InputError(f"--by {by}: with --before and --after use LABEL=A")
        return _BeforeAfterComparison(before, after, (label, values[0]) if by else None)
    if before or after:
        raise InputError("--before and --after must be given together")
    if by is None:
        raise InputError("nothing to compare: give --by LABEL=A,B, or --before WEEK --after WEEK")
    if not label or len(values) != 2 or values[0] == values[1]:
        raise InputError(f"--by {by}: use LABEL=A,B with two different values")
    return _GroupComparison(label, (values[0], values[1]), weeks)


def _newest_revisions(lake: str) -> list[Row]:
    rows = read_once(lake, tables.CLUSTER_WEEKS).to_pylist()
    weeks = sorted({row["week"] for row in rows})
    select_week(weeks, None, lake)
    return [row for week in weeks for row in select_latest_revisions(rows, week, ["cluster_id"])]


def _compare_groups(
    source: LakeSource, rows: Sequence[Row], metric: str, comparison: _GroupComparison, random: Random
) -> ClusterComparison:
    members = {value: _select_members(source, comparison.label, value) for value in comparison.values}
    closed = sorted({row["week"] for row in rows if row["closed"]})[-comparison.weeks :]
    if not closed:
        raise InputError(f"{source.lake}: no week is closed yet; a week closes 48 h after its end")
    result = compare_cluster_groups(rows, metric, closed, members, random)
    if result is None:
        raise InputError(
            f"{source.lake}: a group of {comparison.label}={','.join(comparison.values)} has no {metric} "
            "with 90% "
            f"coverage in the closed {_format_weeks(closed)}; include more weeks with --weeks"
        )
    return result


def _compare_before_after(
    source: LakeSource, rows: Sequence[Row], metric: str, comparison: _BeforeAfterComparison, random: Random
) -> ClusterComparison:
    weeks = sorted({row["week"] for row in rows})
    before, after = (select_week(weeks, day, source.lake) for day in (comparison.before, comparison.after))
    if before == after:
        raise InputError(f"--before and --after are in the same week, {before}: give two weeks")
    members = _select_members(source, *comparison.label_value) if comparison.label_value else None
    result = compare_before_and_after(rows, metric, (before, after), members, random)
    if result is None:
        raise InputError(
            f"{source.lake}: no cluster has {metric} with 90% coverage in both weeks {before} and {after}"
        )
    return result


def _select_members(source: LakeSource, label: str, value: str) -> set[str]:
    """Return the ids of the clusters with the label value.

    Raises: InputError without a fleet file, or if no cluster has it.
    """
    if source.fleet is None:
        raise InputError("--by needs the clusters' labels: give the fleet file with --config")
    clusters = source.fleet.clusters
    members = {cluster.id for cluster in clusters if (label, value) in cluster.segments}
    if not members:
        raise InputError(f"--by: no cluster has {label}={value}; {_describe_labels(clusters, label)}")
    return members


def _describe_labels(clusters: Sequence[Cluster], label: str) -> str:
    segments = {segment for cluster in clusters for segment in cluster.segments if segment[0] != "fleet"}
    values = sorted(value for name, value in segments if name == label)
    if values:
        return f"values of {label}: {', '.join(values)}"
    return f"labels: {', '.join(sorted({name for name, _ in segments}))}"


def _to_json(result: ClusterComparison, metric: str, by: str | None) -> dict[str, Any]:
    return {
        "metric": metric,
        "by": by,
        "sides": result.sides,
        "weeks": result.weeks,
        **asdict(result.difference),
        "means_little": result.difference.has_few_clusters,
        "verdict": result.verdict,
        "left_out": result.left_out,
    }


def _to_rows(result: ClusterComparison, metric: str) -> list[Mapping[str, Any]]:
    return [
        {"side": side, "cluster_id": cluster_id, metric: value}
        for side in result.sides
        for cluster_id, value in result.values[side].items()
    ]


def _print(source: LakeSource, result: ClusterComparison, metric: str) -> None:
    difference, side_a, side_b = result.difference, *result.sides
    output = open_console()
    output.print(f"{source.name}: {metric}, {_format_weeks(result.weeks)}", style="bold", markup=False)
    table = Table("", "clusters", Column("median", justify="right"), box=SIMPLE)
    table.add_row(side_a, f"{difference.clusters_a:,}", _format_value(metric, difference.median_a))
    table.add_row(side_b, f"{difference.clusters_b:,}", _format_value(metric, difference.median_b))
    print_table(output, table)
    output.print(
        f"{_describe_difference(result)}: {_format_difference(metric, difference.difference)}, 95% interval "
        f"{_format_difference(metric, difference.low)} to "
        f"{_format_difference(metric, difference.high)}: {result.verdict}",
        markup=False,
    )
    if difference.has_few_clusters:
        smaller_side = format_count(min(difference.clusters_a, difference.clusters_b), "cluster")
        output.print(
            f"The interval is unreliable: {smaller_side}, at least {MIN_INTERVAL_CLUSTERS} are needed.",
            style="yellow",
        )
    if result.left_out:
        output.print(
            f"{format_count(len(result.left_out), 'cluster')} excluded, without a week of sufficient "
            "coverage: "
            f"{', '.join(result.left_out)}",
            markup=False,
        )


def _describe_difference(result: ClusterComparison) -> str:
    """Return what the difference is: the median of changes differs from the change of medians."""
    side_a, side_b = result.sides
    return (
        "median change of a cluster"
        if result.sides == BEFORE_AND_AFTER
        else f"{side_b} compared with {side_a}"
    )


def _format_weeks(weeks: Sequence[date]) -> str:
    return f"week {weeks[0]}" if len(weeks) == 1 else f"weeks {weeks[0]} to {weeks[-1]}"


def _format_value(metric: str, value: float) -> str:
    if metric.endswith("_us"):
        return format_milliseconds(value)
    return format_minutes(value) if metric.endswith("_minutes") else format_percent(value, 4)


def _format_difference(metric: str, value: float) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{_format_value(metric, abs(value))}"
