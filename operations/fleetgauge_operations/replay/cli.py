"""`fleetgauge replay`."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.detection import (
    DEFAULT_THRESHOLDS,
    FindingEpisode,
    FindingSubject,
    Thresholds,
)
from fleetgauge_core.fleet import (
    Fleet,
    FleetFileError,
    Telemetry,
    load_fleet,
)
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import (
    InputError,
    TimestampParam,
    console,
    print_json,
)
from fleetgauge_operations.replay.comparison import FindingComparison, ReplayVerdict, compare_findings
from fleetgauge_operations.replay.incident import SUFFIX, Incident, IncidentError
from fleetgauge_operations.replay.stored_records import read_incident

#: With the hour in which a broker's own history is learnt, and what its first block takes besides.
_BEFORE_MIN = 75


@click.group(epilog="Example: fleetgauge replay run incidents/")
def replay() -> None:
    """Keep incidents as files, and see what the rules of today find in them."""


@replay.command(
    epilog="Example: fleetgauge replay export --cluster orders-eu --from 2026-03-02T10:00:00Z "
    "--to 2026-03-02T10:30:00Z --note 'disk of broker 3 full'"
)
@click.option("--cluster", "cluster_id", required=True, help="Whose incident it is.")
@click.option(
    "--from", "since", type=TimestampParam(), required=True, help="When it began, or a little before."
)
@click.option(
    "--to", "until", type=TimestampParam(), required=True, help="When it was over, or a little after."
)
@click.option("--note", default="", help="What it was, for whoever reads of it later.")
@click.option("--false-alarm", is_flag=True, help="Nothing was to be named, whatever was.")
@click.option(
    "--before",
    "before_min",
    type=click.IntRange(min=0),
    default=_BEFORE_MIN,
    show_default=True,
    help="Minutes of pulses before it, from which is learnt what is usual.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"The file; its name should end with {SUFFIX}.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
@click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")
def export(
    cluster_id: str,
    since: datetime,
    until: datetime,
    note: str,
    false_alarm: bool,
    before_min: int,
    out: Path | None,
    config: Path,
    as_json: bool,
) -> None:
    """Keep what agents said and what was found, from the telemetry cluster's topics, as one file."""
    telemetry = _telemetry(config, cluster_id)
    if until <= since:
        raise InputError(f"--to {until:%FT%TZ} is not after --from {since:%FT%TZ}")
    path = out or Path(f"{cluster_id}-{since:%Y%m%dT%H%M%SZ}{SUFFIX}")
    if path.exists():
        raise InputError(f"{path} is there already: name another with --out")
    with console.status(f"reading what was said of {cluster_id}"):
        try:
            incident = read_incident(telemetry, cluster_id, since, until, timedelta(minutes=before_min), note)
        except KafkaUnavailableError as error:
            raise InputError(f"telemetry cannot be read: {error}") from error
    if not incident.pulses:
        hours = telemetry.topics.probe_pulse.retention_hours
        raise InputError(f"no pulse of {cluster_id} until {until:%FT%TZ}: they are kept for {hours:g} hours")
    if false_alarm:
        incident = replace(incident, wanted=())
    try:
        incident.write(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    told = {"file": str(path), "pulses": len(incident.pulses), "findings": len(incident.wanted)}
    console.print(f"{path}: {told['pulses']} pulses, {told['findings']} findings", markup=False)
    if as_json:
        print_json(told)


@replay.command(epilog="Example: fleetgauge replay run incidents/ --set flaps=2")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A threshold to try, in its own unit; of a duration, seconds. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")
@click.pass_context
def run(context: click.Context, paths: Sequence[Path], changes: Sequence[str], as_json: bool) -> None:
    """Judge incidents anew, files or folders of them; exit 1 where something else is named than was to be."""
    limits = changed(DEFAULT_THRESHOLDS, changes)
    results = [(path, incident, compare_findings(incident, limits)) for path, incident in _incidents(paths)]
    for path, incident, pairs in results:
        for line in _lines(path, incident, pairs):
            console.print(line, markup=False, soft_wrap=True)
    if as_json:
        print_json([_document(*one) for one in results])
    same = all(pair.verdict is ReplayVerdict.SAME for _, _, pairs in results for pair in pairs)
    context.exit(0 if same else 1)


def changed(limits: Thresholds, changes: Sequence[str]) -> Thresholds:
    """With each ``NAME=VALUE``. Raises InputError."""
    known = {one.name: getattr(limits, one.name) for one in fields(limits)}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in known:
            raise InputError(f"--set {change}: no threshold {name!r}; there are {', '.join(known)}")
        usual = known[name]
        try:
            known[name] = _threshold(value, as_a_span=isinstance(usual, timedelta))
        except (ValueError, OverflowError) as error:
            raise InputError(
                f"--set {change}: wanted a number above 0, as in {name}={_plain(usual)}"
            ) from error
    return Thresholds(**known)


def _threshold(value: str, *, as_a_span: bool) -> timedelta | int:
    number = float(value) if as_a_span else int(value)
    if number <= 0:
        raise ValueError(number)
    return timedelta(seconds=number) if as_a_span else int(number)


def _plain(limit: timedelta | int) -> str:
    return f"{limit.total_seconds():g}" if isinstance(limit, timedelta) else str(limit)


def _telemetry(config: Path, cluster_id: str) -> Telemetry:
    try:
        fleet: Fleet = load_fleet(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the pulses are")
    known = [one.id for one in fleet.clusters]
    if cluster_id not in known:
        raise InputError(f"no cluster {cluster_id!r} in {config}; there are {', '.join(known)}")
    return fleet.telemetry


def _incidents(paths: Sequence[Path]) -> Iterator[tuple[Path, Incident]]:
    """Each file once, folders with all that is below them. Raises InputError."""
    files = [
        file for path in paths for file in (sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path])
    ]
    if not files:
        raise InputError(
            f"no *{SUFFIX} in {', '.join(map(str, paths))}: `fleetgauge replay export` makes one"
        )
    for file in dict.fromkeys(files):
        try:
            yield file, Incident.read(file)
        except IncidentError as error:
            raise InputError(str(error)) from error


def _lines(path: Path, incident: Incident, pairs: Sequence[FindingComparison]) -> Iterator[str]:
    yield f"{path}: {incident.note}" if incident.note else str(path)
    if not pairs:
        yield "  nothing is named, as it was to be"
    for pair in pairs:
        by = f" by {abs(pair.later_s):g} s" if pair.later_s else ""
        named = (
            f"named {_time(pair.found.opened_at)}, cleared {_time(pair.found.cleared_at)}"
            if pair.found
            else ""
        )
        wanted = f"was to be named {_time(pair.wanted.opened_at)}" if pair.wanted else "was not to be named"
        told = named if pair.verdict is ReplayVerdict.SAME else "; ".join(filter(None, (named, wanted)))
        yield f"  {pair.verdict}{by}: {pair.either.kind} of {_whom(pair.either.subject)}: {told}"


def _whom(subject: FindingSubject) -> str:
    if subject.vantage is not None:
        towards = (
            f" towards broker {subject.target_broker_id}" if subject.target_broker_id is not None else ""
        )
        return f"{subject.cluster_id}, vantage {subject.vantage}{towards}"
    broker = f", broker {subject.broker_id}" if subject.broker_id is not None else ""
    return f"{subject.cluster_id}{broker}"


def _time(at: datetime | None) -> str:
    return f"{at:%FT%TZ}" if at else "not within it"


def _document(path: Path, incident: Incident, pairs: Sequence[FindingComparison]) -> dict[str, Any]:
    findings = [
        {
            "broker": pair.either.subject.broker_id,
            "vantage": pair.either.subject.vantage,
            "towards": pair.either.subject.target_broker_id,
            "kind": pair.either.kind,
            "verdict": pair.verdict,
            "later_s": pair.later_s,
            "wanted": _span(pair.wanted),
            "found": _span(pair.found),
        }
        for pair in pairs
    ]
    return {"file": str(path), "cluster": incident.cluster_id, "note": incident.note, "findings": findings}


def _span(one: FindingEpisode | None) -> dict[str, str | None] | None:
    if one is None:
        return None
    cleared = one.cleared_at.isoformat() if one.cleared_at else None
    return {"named_at": one.opened_at.isoformat(), "cleared_at": cleared}
