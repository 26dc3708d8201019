"""What `fleetgauge simulate` does. Spark is imported only when a lake is written."""

import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fleetgauge_core import __version__
from fleetgauge_core.fleet import Telemetry, load_fleet, require_telemetry
from fleetgauge_core.kafka import explain_telemetry_errors
from fleetgauge_core.lake.delta_table import ensure_usable_path
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.supervision import request_shutdown_on_error, supervise_process
from fleetgauge_pipelines.jobs.lake_session import SHUTDOWN_DEADLINE_S, open_lake_for_pipeline
from fleetgauge_pipelines.jobs.progress import ReportProgress, show_progress
from fleetgauge_pipelines.jobs.simulate_cli import DEFAULT_RECORD_MINUTES, DEFAULT_WEEKS
from fleetgauge_pipelines.jobs.simulate_folder import SimulatedFolder
from fleetgauge_pipelines.jobs.simulate_records import send_records, write_record_files
from fleetgauge_pipelines.simulation import SimulatedFleet

_MINUTE = timedelta(minutes=1)
_WEEK_MINUTES = 7 * 24 * 60
_MAX_RECORD_MINUTES = 3 * 24 * 60
_MIN_YEAR = 2000
#: 128 + SIGINT, as a shell reports it.
_EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class _SimulationRequest:
    """What to simulate and where to write it: ``records`` is 'files', 'topic', or None for a lake."""

    simulated: SimulatedFleet
    records: str | None
    telemetry: Telemetry | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what determines the result: requests with equal arguments have equal results."""
        return {
            "version": __version__,
            "seed": self.simulated.seed,
            "clusters": self.simulated.clusters,
            "minutes": self.simulated.minutes,
            "end": self.simulated.end.isoformat(),
            "records": self.records,
            **self.fleet_file_keys,
        }

    @property
    def fleet_file_keys(self) -> dict[str, Any]:
        """Return the keys that the request adds to the fleet file."""
        return {"telemetry": self.telemetry.model_dump(mode="json")} if self.telemetry else {}


def simulate_fleet(
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
    """Write a simulated fleet's history to the folder ``to``, unless it holds that history already.

    Raises: InputError for options that exclude each other, and if the folder cannot be written.
    """
    length = _resolve_length(records, weeks, minutes)
    ends = _resolve_end(end)
    simulated = SimulatedFleet(seed, clusters, ends - length * _MINUTE, length)
    request = _SimulationRequest(simulated, records, _find_telemetry(records, config))
    folder = SimulatedFolder(to)
    if records is None:
        ensure_usable_path(str(folder.lake))
    try:
        result = folder.read_result(request.arguments)
        if result:
            _print(f"{to} holds the simulation with these arguments already: nothing to do")
        else:
            with supervise_process(SHUTDOWN_DEADLINE_S) as shutdown:
                result = _run(request, folder, shutdown)
    except OSError as error:
        raise InputError(f"{error.filename or to}: {error.strerror or error}") from error
    except KeyboardInterrupt:
        _print(f"interrupted; {to} is incomplete: run the same command again to write it from the start")
        raise SystemExit(_EXIT_INTERRUPTED) from None
    if as_json:
        print_json(result | {"config": str(folder.config)})


def _print(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def _resolve_length(records: str | None, weeks: int | None, minutes: int | None) -> int:
    """Return the length of the history in minutes."""
    if records is None:
        if minutes is not None:
            raise InputError("--minutes needs --records; give the length of a lake's history as --weeks")
        return (weeks or DEFAULT_WEEKS) * _WEEK_MINUTES
    if weeks is not None:
        raise InputError("--weeks is for a lake; give the length of --records as --minutes")
    if minutes is not None and minutes > _MAX_RECORD_MINUTES:
        raise InputError(
            f"--minutes {minutes}: at most {_MAX_RECORD_MINUTES} (3 days) of records can be written; "
            "for a longer history omit --records and give --weeks, which writes silver directly"
        )
    return minutes or DEFAULT_RECORD_MINUTES


def _resolve_end(end: datetime | None) -> datetime:
    if end is None:
        return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    if end.second or end.year < _MIN_YEAR:
        raise InputError(f"--end {end:%Y-%m-%dT%H:%M:%SZ}: expected a whole minute, not before {_MIN_YEAR}")
    return end.replace(tzinfo=UTC)


def _find_telemetry(records: str | None, config: Path | None) -> Telemetry | None:
    """Return the telemetry cluster for records, with topics that no pipeline of measured records reads."""
    if records != "topic":
        return None
    if config is None:
        raise InputError("--records topic needs --config: a fleet file whose telemetry cluster receives them")
    fleet = load_fleet(config)
    telemetry = require_telemetry(fleet, config)
    return telemetry if fleet.simulated else _rename_topics(telemetry)


def _rename_topics(telemetry: Telemetry) -> Telemetry:
    renamed = {
        use: topic.model_copy(update={"name": f"{topic.name}.simulated"}) for use, topic in telemetry.topics
    }
    return telemetry.model_copy(update={"topics": telemetry.topics.model_copy(update=renamed)})


def _run(request: _SimulationRequest, folder: SimulatedFolder, shutdown: ShutdownFlag) -> dict[str, Any]:
    started, simulated = time.monotonic(), request.simulated
    folder.begin(request.arguments, simulated, request.fleet_file_keys)
    with show_progress(shutdown) as advance:
        if request.records is None:
            counts = _write_lake(request, folder, advance, shutdown)
        else:
            counts = _write_records(request, folder, advance)
    result: dict[str, Any] = {
        "clusters": simulated.clusters,
        "brokers": sum(len(profile.brokers) for profile in simulated.profiles),
        "incidents": len(simulated.ledger()["incidents"]),
        **counts,
        "bytes": folder.count_bytes(),
        "seconds": round(time.monotonic() - started, 1),
    }
    folder.finish(request.arguments, result)
    _print(f"{folder.path}: written in {result['seconds']} s")
    return result


def _write_lake(
    request: _SimulationRequest, folder: SimulatedFolder, advance: ReportProgress, shutdown: ShutdownFlag
) -> dict[str, int]:
    fleet = load_fleet(folder.config)
    with open_lake_for_pipeline(fleet.lake) as (spark, lake), request_shutdown_on_error(shutdown):
        from fleetgauge_pipelines.jobs.simulate import simulate_lake

        rows = simulate_lake(spark, lake, fleet, request.simulated, advance)
    return {"weeks": request.simulated.weeks, **asdict(rows)}


def _write_records(
    request: _SimulationRequest, folder: SimulatedFolder, advance: ReportProgress
) -> dict[str, int]:
    if request.telemetry is None:
        count = write_record_files(request.simulated, folder.records, advance)
    else:
        with explain_telemetry_errors():
            count = send_records(request.simulated, request.telemetry, advance)
    return {"minutes": request.simulated.minutes, "records": count}
