"""What `fleetgauge replay export` and `fleetgauge replay run` do."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fleetgauge_core.contract.change_document import change_document
from fleetgauge_core.detection import (
    DEFAULT_THRESHOLDS,
    FindingEpisode,
    FindingSubject,
    Thresholds,
)
from fleetgauge_core.fleet import Telemetry, load_fleet, require_telemetry
from fleetgauge_core.kafka import explain_telemetry_errors
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_operations.changes.change_output import format_change
from fleetgauge_operations.replay import SUFFIX
from fleetgauge_operations.replay.comparison import FindingComparison, ReplayVerdict, compare_findings
from fleetgauge_operations.replay.incident import Incident
from fleetgauge_operations.replay.stored_records import read_incident


def export_incident(
    cluster_id: str,
    since: datetime,
    until: datetime,
    note: str,
    false_alarm: bool,
    lead_min: int,
    out: Path | None,
    config: Path,
    as_json: bool,
) -> None:
    """Write an incident from the telemetry cluster's topics to one file.

    Raises: InputError for a wrong cluster, time or file; KafkaUnavailableError.
    """
    telemetry = _load_telemetry(config, cluster_id)
    if until <= since:
        raise InputError(f"--to {until:%FT%TZ} is not after --from {since:%FT%TZ}")
    path = out or Path(f"{cluster_id}-{since:%Y%m%dT%H%M%SZ}{SUFFIX}")
    if path.exists():
        raise InputError(f"{path} exists already: choose another file with --out")
    with console.status(f"reading pulses and findings of {cluster_id}"), explain_telemetry_errors():
        incident = read_incident(telemetry, cluster_id, since, until, timedelta(minutes=lead_min), note)
    if not incident.pulses:
        hours = telemetry.topics.probe_pulse.retention_hours
        raise InputError(
            f"no pulse of {cluster_id} until {until:%FT%TZ}: pulses are retained for {hours:g} h"
        )
    if false_alarm:
        incident = replace(incident, expected=())
    try:
        incident.write(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    summary = {
        "file": str(path),
        "pulses": len(incident.pulses),
        "findings": len(incident.expected),
        "changes": len(incident.changes),
    }
    console.print(
        f"{path}: {summary['pulses']} pulses, {summary['findings']} findings, {summary['changes']} changes",
        markup=False,
    )
    if as_json:
        print_json(summary)


def evaluate_incidents(paths: Sequence[Path], changes: Sequence[str], as_json: bool) -> None:
    """Compare what incident files expect with the present detection rules; exit with 1 if they differ."""
    limits = change_thresholds(DEFAULT_THRESHOLDS, changes)
    results = [
        (path, incident, compare_findings(incident, limits)) for path, incident in _read_incidents(paths)
    ]
    for path, incident, comparisons in results:
        for line in _describe_result(path, incident, comparisons):
            console.print(line, markup=False, soft_wrap=True)
    if as_json:
        print_json([_document(*result) for result in results])
    is_same = all(
        comparison.verdict is ReplayVerdict.SAME
        for _, _, comparisons in results
        for comparison in comparisons
    )
    if not is_same:
        raise SystemExit(1)


def change_thresholds(limits: Thresholds, changes: Sequence[str]) -> Thresholds:
    """Return the thresholds with each change, given as ``NAME=VALUE``. Raises: InputError."""
    values = {field.name: getattr(limits, field.name) for field in fields(limits)}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in values:
            raise InputError(f"--set {change}: unknown threshold {name!r}; known ones: {', '.join(values)}")
        previous = values[name]
        try:
            values[name] = _parse_threshold(text, is_duration=isinstance(previous, timedelta))
        except (ValueError, OverflowError) as error:
            example = f"{name}={_format_threshold(previous)}"
            raise InputError(f"--set {change}: expected a number above 0, as in {example}") from error
    return Thresholds(**values)


def _parse_threshold(text: str, *, is_duration: bool) -> timedelta | int:
    number = float(text) if is_duration else int(text)
    if number <= 0:
        raise ValueError(number)
    return timedelta(seconds=number) if is_duration else int(number)


def _format_threshold(value: timedelta | int) -> str:
    return f"{value.total_seconds():g}" if isinstance(value, timedelta) else str(value)


def _load_telemetry(config: Path, cluster_id: str) -> Telemetry:
    fleet = load_fleet(config)
    telemetry = require_telemetry(fleet, config)
    cluster_ids = [cluster.id for cluster in fleet.clusters]
    if cluster_id not in cluster_ids:
        raise InputError(f"no cluster {cluster_id!r} in {config}; its clusters are {', '.join(cluster_ids)}")
    return telemetry


def _read_incidents(paths: Sequence[Path]) -> Iterator[tuple[Path, Incident]]:
    """Yield each incident once; folders are searched recursively. Raises: InputError; IncidentError."""
    files = [
        file for path in paths for file in (sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path])
    ]
    if not files:
        raise InputError(
            f"no *{SUFFIX} file in {', '.join(map(str, paths))}: write one with `fleetgauge replay export`"
        )
    for file in dict.fromkeys(files):
        yield file, Incident.read(file)


def _describe_result(
    path: Path, incident: Incident, comparisons: Sequence[FindingComparison]
) -> Iterator[str]:
    yield f"{path}: {incident.note}" if incident.note else str(path)
    for change in incident.changes:
        yield f"  change: {format_change(change)}"
    if not comparisons:
        yield "  no findings, as expected"
    for comparison in comparisons:
        difference = f" by {abs(comparison.later_s):g} s" if comparison.later_s else ""
        episode = comparison.either
        yield (
            f"  {comparison.verdict}{difference}: {episode.kind} of {_describe_subject(episode.subject)}: "
            f"{_describe_times(comparison)}"
        )


def _describe_times(comparison: FindingComparison) -> str:
    parts = []
    if detected := comparison.detected:
        cleared = f"cleared {_format_time(detected.cleared_at)}" if detected.cleared_at else "not cleared"
        parts.append(f"opened {_format_time(detected.opened_at)}, {cleared}")
    if comparison.expected is None:
        parts.append("not expected")
    elif comparison.verdict is not ReplayVerdict.SAME:
        parts.append(f"expected to open {_format_time(comparison.expected.opened_at)}")
    return "; ".join(parts)


def _describe_subject(subject: FindingSubject) -> str:
    if subject.vantage is not None:
        target = f" to broker {subject.target_broker_id}" if subject.target_broker_id is not None else ""
        return f"{subject.cluster_id}, vantage {subject.vantage}{target}"
    broker = f", broker {subject.broker_id}" if subject.broker_id is not None else ""
    return f"{subject.cluster_id}{broker}"


def _format_time(at: datetime) -> str:
    return f"{at:%FT%TZ}"


def _document(path: Path, incident: Incident, comparisons: Sequence[FindingComparison]) -> dict[str, Any]:
    findings = [
        {
            "broker": comparison.either.subject.broker_id,
            "vantage": comparison.either.subject.vantage,
            "towards": comparison.either.subject.target_broker_id,
            "kind": comparison.either.kind,
            "verdict": comparison.verdict,
            "later_s": comparison.later_s,
            "wanted": _episode_document(comparison.expected),
            "found": _episode_document(comparison.detected),
        }
        for comparison in comparisons
    ]
    return {
        "file": str(path),
        "cluster": incident.cluster_id,
        "note": incident.note,
        "findings": findings,
        "changes": [change_document(change) for change in incident.changes],
    }


def _episode_document(episode: FindingEpisode | None) -> dict[str, str | None] | None:
    if episode is None:
        return None
    cleared = episode.cleared_at.isoformat() if episode.cleared_at else None
    return {"named_at": episode.opened_at.isoformat(), "cleared_at": cleared}
