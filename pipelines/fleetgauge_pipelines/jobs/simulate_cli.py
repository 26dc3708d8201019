"""`fleetgauge simulate`. Spark is imported when a lake is made, not before."""

import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fleetgauge_core import __version__
from fleetgauge_core.fleet import FleetFileError, Telemetry, load
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.lease import LeaseError
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_core.runtime.shutdown import Stopping, stopping_on_signals
from fleetgauge_pipelines.jobs.cli import writing
from fleetgauge_pipelines.jobs.progress import Advance, bars
from fleetgauge_pipelines.jobs.simulate_folder import ForeignFolderError, SimulatedFolder
from fleetgauge_pipelines.jobs.simulate_records import send, write_files
from fleetgauge_pipelines.simulation import SimulatedFleet

_MINUTE = timedelta(minutes=1)
_WEEK_MINUTES = 7 * 24 * 60
_WEEKS, _MINUTES = 35, 60
_MOST_RECORD_MINUTES = 3 * 24 * 60
_OLDEST_YEAR = 2000


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is asked for; ``records`` None is a lake."""

    simulated: SimulatedFleet
    records: str | None
    telemetry: Telemetry | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Equal for equal results."""
        one = self.simulated
        return {
            "version": __version__,
            "seed": one.seed,
            "clusters": one.clusters,
            "minutes": one.minutes,
            "end": one.end.isoformat(),
            "records": self.records,
            **self.in_fleet_file,
        }

    @property
    def in_fleet_file(self) -> dict[str, Any]:
        return {"telemetry": self.telemetry.model_dump(mode="json")} if self.telemetry else {}


@click.command(epilog="Example: fleetgauge simulate --to ./simulated --clusters 20 --weeks 35")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    required=True,
    help="A folder of its own: fleet.yaml, ledger.json and the lake.",
)
@click.option("--clusters", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@click.option("--weeks", type=click.IntRange(1, 520), help=f"How long a history.  [default: {_WEEKS}]")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Same seed, same fleet."
)
@click.option(
    "--end",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ"]),
    help="When the history ends (UTC).  [default: the start of this hour]",
)
@click.option(
    "--records",
    type=click.Choice(["files", "topic"]),
    help="Instead of a lake: probe records, in DIR/records/*.avro or to the telemetry cluster of --config.",
)
@click.option(
    "--minutes", type=click.IntRange(min=1), help=f"How long a history of records.  [default: {_MINUTES}]"
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The fleet whose telemetry cluster takes --records topic.",
)
@click.option("--json", "as_json", is_flag=True, help="Say the counts on stdout as JSON.")
def simulate(
    to: Path,
    clusters: int,
    weeks: int | None,
    seed: int,
    end: datetime | None,
    records: str | None,
    minutes: int | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Make up a believable fleet's history, so that pages and reviews have something to show.

    Incidents are planted in it; ledger.json says where. The fleet file is marked as simulated.
    """
    stopping = stopping_on_signals()
    length = _length(records, weeks, minutes)
    ends = _end(end)
    simulated = SimulatedFleet(seed, clusters, ends - length * _MINUTE, length)
    wish = _Wish(simulated, records, _telemetry(records, config))
    folder = SimulatedFolder(to)
    try:
        made = folder.made(wish.arguments)
        if made:
            _say(f"{to} is made already, of the same arguments: nothing to do")
        else:
            made = _make(wish, folder, stopping)
    except (ForeignFolderError, LeaseError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{error.filename or to}: {error.strerror or error}") from error
    except KafkaUnavailableError as error:
        raise InputError(f"telemetry cannot be reached: {error}") from error
    except KeyboardInterrupt:
        _say(f"ended; {to} is incomplete: the same command makes it anew")
        raise SystemExit(130) from None
    if as_json:
        print_json(made | {"config": str(folder.config)})


def _say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def _length(records: str | None, weeks: int | None, minutes: int | None) -> int:
    """Of the history, in minutes."""
    if records is None:
        if minutes is not None:
            raise InputError("--minutes needs --records; a lake's history is given in --weeks")
        return (weeks or _WEEKS) * _WEEK_MINUTES
    if weeks is not None:
        raise InputError("--weeks is for a lake; the length of --records is given in --minutes")
    if minutes is not None and minutes > _MOST_RECORD_MINUTES:
        raise InputError(
            f"--minutes {minutes}: at most {_MOST_RECORD_MINUTES} (3 days) of whole records are made; "
            "for a longer history leave out --records and say --weeks, which makes silver at once"
        )
    return minutes or _MINUTES


def _end(end: datetime | None) -> datetime:
    if end is None:
        return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    if end.second or end.year < _OLDEST_YEAR:
        raise InputError(
            f"--end {end:%Y-%m-%dT%H:%M:%SZ}: expected a whole minute, not before {_OLDEST_YEAR}"
        )
    return end.replace(tzinfo=UTC)


def _telemetry(records: str | None, config: Path | None) -> Telemetry | None:
    """Where records go: to topics that no pipeline of measured records reads."""
    if records != "topic":
        return None
    if config is None:
        raise InputError("--records topic needs --config: a fleet file whose telemetry cluster takes them")
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the records go")
    return fleet.telemetry if fleet.simulated else _apart(fleet.telemetry)


def _apart(telemetry: Telemetry) -> Telemetry:
    named = {
        use: topic.model_copy(update={"name": f"{topic.name}.simulated"}) for use, topic in telemetry.topics
    }
    return telemetry.model_copy(update={"topics": telemetry.topics.model_copy(update=named)})


def _make(wish: _Wish, folder: SimulatedFolder, stopping: Stopping) -> dict[str, Any]:
    started, simulated = time.monotonic(), wish.simulated
    folder.begin(wish.arguments, simulated, wish.in_fleet_file)
    with bars(stopping) as advance:
        rows = _lake(wish, folder, advance) if wish.records is None else _records(wish, folder, advance)
    made: dict[str, Any] = {
        "clusters": simulated.clusters,
        "brokers": sum(len(profile.brokers) for profile in simulated.profiles),
        "incidents": len(simulated.ledger()["incidents"]),
        **rows,
        "bytes": folder.bytes(),
        "seconds": round(time.monotonic() - started, 1),
    }
    folder.finish(wish.arguments, made)
    _say(f"{folder.path}: made in {made['seconds']} s")
    return made


def _lake(wish: _Wish, folder: SimulatedFolder, advance: Advance) -> dict[str, int]:
    fleet = load(folder.config)
    with writing(fleet.lake) as (spark, lake):
        from fleetgauge_pipelines.jobs.simulate import make_lake

        rows = make_lake(spark, lake, fleet, wish.simulated, advance)
    return {"weeks": wish.simulated.weeks, **asdict(rows)}


def _records(wish: _Wish, folder: SimulatedFolder, advance: Advance) -> dict[str, int]:
    if wish.telemetry is None:
        count = write_files(wish.simulated, folder.records, advance)
    else:
        count = send(wish.simulated, wish.telemetry, advance)
    return {"minutes": wish.simulated.minutes, "records": count}
