"""`fleetgauge slo`: the fleet's week and its clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE
from rich.table import Column, Table
from rich.text import Text

from fleetgauge_core import tables
from fleetgauge_core.runtime.cli import console
from fleetgauge_dashboards.reader import Lake, column, read_once
from fleetgauge_dashboards.reader.recency import recency
from fleetgauge_dashboards.terminal.options import (
    Asked,
    asked,
    form_options,
    held_week,
    lake_options,
    one_line_errors,
    week_argument,
)
from fleetgauge_dashboards.terminal.output import answer_csv, answer_json, page
from fleetgauge_dashboards.units import count, duration, instant, milliseconds, minutes, percent
from fleetgauge_dashboards.views.fleet import CLUSTERS_FOR_A_P99, shown
from fleetgauge_dashboards.views.freshness import Age, Freshness, freshness
from fleetgauge_dashboards.views.standings import (
    Burn,
    Row,
    availability_left_minutes,
    burns,
    share_left,
    week_rows,
    worst_first,
)

_BURN = tuple(field.name for field in fields(Burn))
_NUMBERS = (
    "latency p99",
    "failures counted",
    "bad minutes",
    "budget left",
    "availability",
    "minutes' p99",
    "budget left",
    "coverage",
)
_BURN_COLUMNS = ("burn 1h, 6h", "burn alerts")
_METRICS = ("latency_p99_us", "availability_p99", "availability_ratio", "latency_budget_left_minutes")


@dataclass(frozen=True, slots=True)
class _Answer:
    week: date
    fresh: Freshness
    fleet: Sequence[Row]
    clusters: Sequence[Row]
    burns: Mapping[str, Burn]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each cluster with its burn, nulls where the week is not the open one."""
        nothing = dict.fromkeys(_BURN)
        return [
            {**row, **(asdict(burn) if (burn := self.burns.get(row["cluster_id"])) else nothing)}
            for row in self.clusters
        ]


@click.command(
    epilog="""\b
Example:
  fleetgauge slo
  fleetgauge slo 2026-03-02 --config fleet.yaml
  fleetgauge slo --json | jq '.clusters[] | select((.latency_budget_left_minutes // 0) < 0)'"""
)
@week_argument(required=False)
@lake_options
@form_options
def slo(week: datetime | None, config: Path | None, lake: str | None, form: str | None) -> None:
    """Show a week's service levels: the fleet, then its clusters, the worst first.

    WEEK is any day of it, by default of the newest. The worst is who has the least share left of its
    latency or its availability budget. Of the newest week, while it is open, it also shows how fast the
    budgets burn and which burn alerts fire, or are frozen for want of data.
    """
    source = asked(lake, config)
    with one_line_errors(), console.status("reading the lake"):
        answer = _answer(source, week, datetime.now(UTC))
    if form == "json":
        age = answer.fresh.age
        answer_json(
            {
                "week": answer.week,
                "age_s": None if age is None else age.total_seconds(),
                "fleet": answer.fleet,
                "clusters": answer.rows,
            }
        )
    elif form == "csv":
        answer_csv((*tables.CLUSTER_WEEKS.names, *_BURN), answer.rows)
    else:
        _print(source, answer)


def _answer(source: Asked, day: datetime | None, now: datetime) -> _Answer:
    lake = Lake(source.lake)
    every = read_once(source.lake, tables.CLUSTER_WEEKS).to_pylist()
    weeks = {row["week"] for row in every}
    week = held_week(sorted(weeks), day, source.lake)
    clusters = worst_first(week_rows(every, week, ["cluster_id"]))
    of_fleet = (column("week") == week) & (column("segment") == "fleet")
    fleet = week_rows(read_once(source.lake, tables.FLEET_WEEKS, of_fleet).to_pylist(), week, ["metric"])
    recent = lake.burn_minutes()
    fresh = freshness(recency(recent), now)
    is_current = week == max(weeks)
    still_open = [row for row in clusters if is_current and not row["closed"]]
    found = burns(recent, still_open, now, source.burn_alerts.windows)
    return _Answer(week, fresh, sorted(fleet, key=_metric_order), clusters, found)


def _metric_order(row: Row) -> int:
    return _METRICS.index(row["metric"]) if row["metric"] in _METRICS else len(_METRICS)


def _print(source: Asked, answer: _Answer) -> None:
    out = page()
    out.print(_age(source, answer.fresh), markup=False)
    out.print(f"Week {answer.week}, {_standing(answer.clusters)}", markup=False)
    out.print(_fleet_table(answer.fleet))
    out.print(_cluster_table(answer))


def _age(source: Asked, fresh: Freshness) -> Text:
    if fresh.until is None or fresh.age is None:
        return Text(f"{source.name}: nothing measured in the newest days", "red")
    words = f"{source.name}: data until {instant(fresh.until)}, {duration(fresh.age)} ago"
    words += f", coverage of its last hour {percent(fresh.coverage, 1)}"
    return Text(f"{words}  STALE" if fresh.state is Age.STALE else words, _AGE_STYLES[fresh.state])


_AGE_STYLES = {Age.NONE: "red", Age.STALE: "bold red", Age.FRESH: "green", Age.ENDED: "dim"}


def _standing(clusters: Sequence[Row]) -> str:
    return "closed" if clusters and all(row["closed"] for row in clusters) else "open, to date"


def _fleet_table(fleet: Sequence[Row]) -> Table:
    quantiles = ("median", "p90", "p99")
    table = Table("fleet", *(Column(name, justify="right") for name in quantiles), "clusters", box=SIMPLE)
    for row in fleet:
        table.add_row(row["metric"], *(shown(row["metric"], row[name]) for name in quantiles), _sample(row))
    return table


def _sample(row: Row) -> str:
    words = f"{row['clusters']:,} count"
    if row["clusters_excluded"]:
        words += f", {row['clusters_excluded']:,} do not (coverage under 90%)"
    few = 0 < row["clusters"] < CLUSTERS_FOR_A_P99
    return f"{words}; p99 is the worst of {count(row['clusters'], 'cluster')}" if few else words


def _cluster_table(answer: _Answer) -> Table:
    burning = bool(answer.burns)
    table = Table("cluster", "week", *(Column(name, justify="right") for name in _NUMBERS), box=SIMPLE)
    for name in _BURN_COLUMNS if burning else ():
        table.add_column(name)
    for row in answer.clusters:
        burn = answer.burns.get(row["cluster_id"])
        cells = _cells(row) + (_burn_cells(burn) if burning else [])
        table.add_row(*cells, style="red" if share_left(row) < 0 else None)
    return table


def _cells(row: Row) -> list[str]:
    return [
        row["cluster_id"],
        f"closed, r{row['revision']}" if row["closed"] else "open",
        milliseconds(row["latency_p99_us"]),
        milliseconds(row["latency_p99_censored_us"]),
        f"{row['bad_minutes']:,}",
        minutes(row["latency_budget_left_minutes"]),
        percent(row["availability_ratio"]),
        percent(row["availability_p99"], 2),
        minutes(availability_left_minutes(row)),
        percent(row["coverage"], 2),
    ]


def _burn_cells(burn: Burn | None) -> list[str]:
    if burn is None:
        return ["–"] * len(_BURN_COLUMNS)
    alerts = [f"▲ {name}" for name in burn.alerts_firing]
    if burn.alerts_frozen:
        alerts.append(f"◌ {len(burn.alerts_frozen)} frozen")
    latency = _pair(burn.latency_burn_1h, burn.latency_burn_6h)
    availability = _pair(burn.availability_burn_1h, burn.availability_burn_6h)
    return [f"latency {latency}\navailability {availability}", "\n".join(alerts)]


def _pair(one_hour: float | None, six_hours: float | None) -> str:
    return ", ".join("–" if burn is None else f"{burn:.1f}x" for burn in (one_hour, six_hours))
