"""`fleetgauge compare`: did a change help?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from pathlib import Path
from random import Random
from typing import Any

import click
from rich.box import SIMPLE
from rich.table import Column, Table

from fleetgauge_core import tables
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.runtime.cli import InputError, console
from fleetgauge_core.slo.comparison import CLUSTERS_FOR_AN_INTERVAL
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.terminal.options import (
    Asked,
    asked,
    form_options,
    held_week,
    lake_options,
    one_line_errors,
)
from fleetgauge_dashboards.terminal.output import answer_csv, answer_json, page
from fleetgauge_dashboards.units import count, milliseconds, minutes, percent
from fleetgauge_dashboards.views.compared import METRICS, PAIRED, Compared, Row, before_and_after, groups
from fleetgauge_dashboards.views.standings import week_rows

_WEEK = click.DateTime(["%Y-%m-%d"])


#: The same question of the same lake gives the same interval.
_SEED = 0


@dataclass(frozen=True, slots=True)
class _Groups:
    """The clusters with one value of a label against those with another, over the newest closed weeks."""

    label: str
    values: tuple[str, str]
    weeks: int


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The same clusters in two weeks: all, or those with a label's value."""

    before: datetime
    after: datetime
    having: tuple[str, str] | None


@click.command(
    epilog="""\b
Example:
  fleetgauge compare --by storage=ssd,nvme
  fleetgauge compare --by region=eu-west-1,us-east-1 --metric availability_ratio --weeks 8
  fleetgauge compare --before 2026-03-02 --after 2026-03-09 --by kafka=4.3"""
)
@click.option("--by", metavar="LABEL=A,B", help="A label, or cloud, region, tier, and two of its values.")
@click.option(
    "--metric",
    type=click.Choice(list(METRICS)),
    default="latency_p99_us",
    show_default=True,
    help="What of the cluster-weeks.",
)
@click.option(
    "--weeks",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="How many of the newest closed weeks; a cluster counts with its median week.",
)
@click.option("--before", type=_WEEK, metavar="WEEK", help="With --after: the same clusters in two weeks.")
@click.option("--after", type=_WEEK, metavar="WEEK", help="With --by LABEL=A: only those clusters.")
@lake_options
@form_options
def compare(
    by: str | None,
    metric: str,
    weeks: int,
    before: datetime | None,
    after: datetime | None,
    config: Path | None,
    lake: str | None,
    form: str | None,
) -> None:
    """Compare clusters with one label against those with another, or the same clusters before and after.

    The difference is the second's median less the first's, or the median of what each cluster changed by,
    with a 95% interval from resampling clusters. A week counts with a coverage of at least 90%. --csv
    prints each cluster's values.
    """
    question = _question(by, weeks, before, after)
    source = asked(lake, config)
    with one_line_errors(), console.status("comparing"):
        rows = _newest_revisions(source.lake)
        random = Random(_SEED)  # noqa: S311 (it resamples)
        if isinstance(question, _Groups):
            found = _groups(source, rows, metric, question, random)
        else:
            found = _pairs(source, rows, metric, question, random)
    if form == "json":
        answer_json(_as_json(found, metric, by))
    elif form == "csv":
        answer_csv(("side", "cluster_id", metric), _as_rows(found, metric))
    else:
        _print(source, found, metric)


def _question(
    by: str | None, weeks: int, before: datetime | None, after: datetime | None
) -> _Groups | _Pairs:
    """Refuses what does not go together."""
    label, _, listed = (by or "").partition("=")
    values = [value for value in listed.split(",") if value]
    if before and after:
        if by and not (label and len(values) == 1):
            raise InputError(f"--by {by}: wanted beside --before and --after: LABEL=A")
        return _Pairs(before, after, (label, values[0]) if by else None)
    if before or after:
        raise InputError("--before and --after go together: give both weeks")
    if by is None:
        raise InputError("compare what? Give --by LABEL=A,B, or --before WEEK --after WEEK")
    if not label or len(values) != 2 or values[0] == values[1]:
        raise InputError(f"--by {by}: wanted: LABEL=A,B with two different values")
    return _Groups(label, (values[0], values[1]), weeks)


def _newest_revisions(lake: str) -> list[Row]:
    rows = read_once(lake, tables.CLUSTER_WEEKS).to_pylist()
    weeks = sorted({row["week"] for row in rows})
    held_week(weeks, None, lake)
    return [row for week in weeks for row in week_rows(rows, week, ["cluster_id"])]


def _groups(source: Asked, rows: Sequence[Row], metric: str, asks: _Groups, random: Random) -> Compared:
    members = {value: _members(source, asks.label, value) for value in asks.values}
    closed = sorted({row["week"] for row in rows if row["closed"]})[-asks.weeks :]
    if not closed:
        raise InputError(f"{source.lake}: no week is closed yet; one closes 48 h after its end")
    found = groups(rows, metric, closed, members, random)
    if found is None:
        raise InputError(
            f"{source.lake}: of {asks.label}={','.join(asks.values)} one side has no {metric} with 90% "
            f"coverage in the closed {_span(closed)}; take more with --weeks"
        )
    return found


def _pairs(source: Asked, rows: Sequence[Row], metric: str, asks: _Pairs, random: Random) -> Compared:
    weeks = sorted({row["week"] for row in rows})
    before, after = (held_week(weeks, day, source.lake) for day in (asks.before, asks.after))
    if before == after:
        raise InputError(f"--before and --after are in one week, {before}: give two")
    members = _members(source, *asks.having) if asks.having else None
    found = before_and_after(rows, metric, (before, after), members, random)
    if found is None:
        raise InputError(
            f"{source.lake}: no cluster has {metric} with 90% coverage in both weeks {before} and {after}"
        )
    return found


def _members(source: Asked, label: str, value: str) -> set[str]:
    """The ids of the clusters that have the value."""
    if source.fleet is None:
        raise InputError("--by needs the clusters' labels: give their fleet file with --config")
    clusters = source.fleet.clusters
    members = {one.id for one in clusters if (label, value) in one.segments}
    if not members:
        raise InputError(f"--by: no cluster has {label}={value}; {_known(clusters, label)}")
    return members


def _known(clusters: Sequence[Cluster], label: str) -> str:
    segments = {segment for one in clusters for segment in one.segments if segment[0] != "fleet"}
    values = sorted(value for name, value in segments if name == label)
    if values:
        return f"values of {label}: {', '.join(values)}"
    return f"labels: {', '.join(sorted({name for name, _ in segments}))}"


def _as_json(found: Compared, metric: str, by: str | None) -> dict[str, Any]:
    return {
        "metric": metric,
        "by": by,
        "sides": found.sides,
        "weeks": found.weeks,
        **asdict(found.difference),
        "means_little": found.difference.means_little,
        "verdict": found.verdict,
        "left_out": found.left_out,
    }


def _as_rows(found: Compared, metric: str) -> list[Mapping[str, Any]]:
    return [
        {"side": side, "cluster_id": one, metric: value}
        for side in found.sides
        for one, value in found.values[side].items()
    ]


def _print(source: Asked, found: Compared, metric: str) -> None:
    shown, a, b = found.difference, *found.sides
    out = page()
    out.print(f"{source.name}: {metric}, {_span(found.weeks)}", style="bold", markup=False)
    table = Table("", "clusters", Column("median", justify="right"), box=SIMPLE)
    table.add_row(a, f"{shown.clusters_a:,}", _value(metric, shown.median_a))
    table.add_row(b, f"{shown.clusters_b:,}", _value(metric, shown.median_b))
    out.print(table)
    out.print(
        f"{_what(found)}: {_signed(metric, shown.difference)}, 95% interval {_signed(metric, shown.low)} to "
        f"{_signed(metric, shown.high)}: {found.verdict}",
        markup=False,
    )
    if shown.means_little:
        fewest = count(min(shown.clusters_a, shown.clusters_b), "cluster")
        out.print(
            f"The interval means little: {fewest}, where {CLUSTERS_FOR_AN_INTERVAL} are needed.",
            style="yellow",
        )
    if found.left_out:
        out.print(
            f"{count(len(found.left_out), 'cluster')} left out, without a week that counts: "
            f"{', '.join(found.left_out)}",
            markup=False,
        )


def _what(found: Compared) -> str:
    """The median change is not the change of the medians."""
    a, b = found.sides
    return "the median cluster changed by" if found.sides == PAIRED else f"{b} against {a}"


def _span(weeks: Sequence[date]) -> str:
    return f"week {weeks[0]}" if len(weeks) == 1 else f"weeks {weeks[0]} to {weeks[-1]}"


def _value(metric: str, value: float) -> str:
    if metric.endswith("_us"):
        return milliseconds(value)
    return minutes(value) if metric.endswith("_minutes") else percent(value, 4)


def _signed(metric: str, value: float) -> str:
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{_value(metric, abs(value))}"
