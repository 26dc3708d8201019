"""`fleetgauge explain`: why a cluster's week is what it is."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click

from fleetgauge_core import tables
from fleetgauge_core.runtime.cli import InputError, console
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader
from fleetgauge_dashboards.terminal.explain_page import print_explanation
from fleetgauge_dashboards.terminal.options import (
    Asked,
    asked,
    form_options,
    held_week,
    lake_options,
    no_week,
    one_line_errors,
    week_argument,
)
from fleetgauge_dashboards.terminal.output import answer_csv, answer_json
from fleetgauge_dashboards.views.cluster import week_span
from fleetgauge_dashboards.views.deciding_minutes import Row
from fleetgauge_dashboards.views.episodes import MINUTE_COLUMNS, with_bad
from fleetgauge_dashboards.views.explanation import Explanation, explanation
from fleetgauge_dashboards.views.samples import MinuteSamples, held_minutes, minute_samples

_NAMED_CLUSTERS = 10


@click.command(
    epilog="""\b
Example:
  fleetgauge explain orders-eu 2026-03-02
  fleetgauge explain orders-eu 2026-03-02 --json | jq .bad_stretches
  fleetgauge explain orders-eu 2026-03-02 --csv > minutes.csv"""
)
@click.argument("cluster", metavar="CLUSTER")
@week_argument(required=True)
@lake_options
@form_options
def explain(cluster: str, week: datetime, config: Path | None, lake: str | None, form: str | None) -> None:
    """Say why a cluster's week is what it is, down to the minutes, brokers and probes that decide it.

    WEEK is any day of it. What has expired is answered from the evidence that was kept when the week
    closed. --csv prints the week's minutes.
    """
    source = asked(lake, config)
    with one_line_errors(), console.status("reading the lake"):
        answer, minutes, samples = _answer(source, cluster, week)
    if form == "json":
        answer_json({**asdict(answer), "samples": samples})
    elif form == "csv":
        for note in answer.notes:
            console.print(f"Note: {note}", markup=False, soft_wrap=True)
        objective_us = answer.week_row["latency_objective_us"]
        answer_csv(MINUTE_COLUMNS, with_bad(answer.cluster_id, minutes, objective_us))
    else:
        print_explanation(source.name, answer, samples)


def _answer(
    source: Asked, cluster_id: str, day: datetime
) -> tuple[Explanation, Sequence[Row], tuple[MinuteSamples, ...]]:
    """The explanation, the minutes it rests on, and the samples of those that decide."""
    reader = ClusterWeekReader(source.lake, cluster_id)
    stored = reader.weeks()
    if not stored:
        raise _unknown_cluster(source.lake, cluster_id)
    week = held_week(sorted({row["week"] for row in stored}), day, f"{source.lake}: {cluster_id}")
    span = week_span(week, source.week.zone)
    known = reader.known(week, span)
    answer = explanation(known, _segments(source, cluster_id))
    deciding = answer.deciding_minutes
    samples = minute_samples(deciding, reader.records(deciding), known.evidence, source.agent_late_us)
    return answer, held_minutes(known.minutes, known.evidence), samples


def _segments(source: Asked, cluster_id: str) -> frozenset[tuple[str, str]] | None:
    clusters = source.fleet.clusters if source.fleet else ()
    return next((one.segments for one in clusters if one.id == cluster_id), None)


def _unknown_cluster(lake: str, cluster_id: str) -> InputError:
    known = sorted(set(read_once(lake, tables.CLUSTER_WEEKS)["cluster_id"].to_pylist()))
    if not known:
        return no_week(lake)
    more = f" and {len(known) - _NAMED_CLUSTERS} more" if len(known) > _NAMED_CLUSTERS else ""
    return InputError(
        f"{lake}: no cluster {cluster_id!r}; there are {', '.join(known[:_NAMED_CLUSTERS])}{more}"
    )
