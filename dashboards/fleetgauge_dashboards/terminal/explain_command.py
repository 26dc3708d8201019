"""What `fleetgauge explain` does: explain the service levels of a cluster's week."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from fleetgauge_core import tables
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_core.runtime.console import console
from fleetgauge_dashboards.reader import read_once
from fleetgauge_dashboards.reader.cluster_week import ClusterWeekReader
from fleetgauge_dashboards.terminal.explanation_output import print_explanation
from fleetgauge_dashboards.terminal.lake_source import LakeSource, no_week_error, resolve_source, select_week
from fleetgauge_dashboards.terminal.output import write_csv, write_json
from fleetgauge_dashboards.views.bad_periods import MINUTE_COLUMNS, mark_bad_minutes
from fleetgauge_dashboards.views.cluster import week_span
from fleetgauge_dashboards.views.deciding_minutes import Row
from fleetgauge_dashboards.views.explanation import Explanation, explain_week
from fleetgauge_dashboards.views.samples import MinuteSamples, available_minutes, collect_minute_samples

_MAX_SUGGESTIONS = 10


def explain_cluster_week(
    cluster: str, week: datetime, config: Path | None, location: str | None, form: str | None
) -> None:
    """Print what determines a cluster's week. Raises: InputError without such a week; LakeError."""
    source = resolve_source(location, config)
    with console.status("reading the lake"):
        explanation, minutes, samples = _explain(source, cluster, week)
    if form == "json":
        write_json({**asdict(explanation), "samples": samples})
    elif form == "csv":
        for note in explanation.notes:
            console.print(f"Note: {note}", markup=False, soft_wrap=True)
        objective_us = explanation.week_row["latency_objective_us"]
        write_csv(MINUTE_COLUMNS, mark_bad_minutes(explanation.cluster_id, minutes, objective_us))
    else:
        print_explanation(source.name, explanation, samples)


def _explain(
    source: LakeSource, cluster_id: str, day: datetime
) -> tuple[Explanation, Sequence[Row], tuple[MinuteSamples, ...]]:
    """Return the explanation, its minutes, and the samples of the deciding minutes.

    Raises: InputError for an unknown cluster or week.
    """
    reader = ClusterWeekReader(source.lake, cluster_id)
    stored = reader.weeks()
    if not stored:
        raise _unknown_cluster_error(source.lake, cluster_id)
    week = select_week(sorted({row["week"] for row in stored}), day, f"{source.lake}: {cluster_id}")
    span = week_span(week, source.week.zone)
    week_rows = reader.read_week(week, span)
    explanation = explain_week(week_rows, _find_segments(source, cluster_id))
    deciding_minutes = explanation.deciding_minutes
    samples = collect_minute_samples(
        deciding_minutes, reader.records(deciding_minutes), week_rows.evidence, source.agent_late_us
    )
    return explanation, available_minutes(week_rows.minutes, week_rows.evidence), samples


def _find_segments(source: LakeSource, cluster_id: str) -> frozenset[tuple[str, str]] | None:
    clusters = source.fleet.clusters if source.fleet else ()
    return next((cluster.segments for cluster in clusters if cluster.id == cluster_id), None)


def _unknown_cluster_error(lake: str, cluster_id: str) -> InputError:
    cluster_ids = sorted(set(read_once(lake, tables.CLUSTER_WEEKS)["cluster_id"].to_pylist()))
    if not cluster_ids:
        return no_week_error(lake)
    more = f" and {len(cluster_ids) - _MAX_SUGGESTIONS} more" if len(cluster_ids) > _MAX_SUGGESTIONS else ""
    return InputError(
        f"{lake}: no cluster {cluster_id!r}; the lake has {', '.join(cluster_ids[:_MAX_SUGGESTIONS])}{more}"
    )
