"""What `fleetgauge stream` and `fleetgauge run` do. Spark is imported after the fleet file was read."""

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fleetgauge_core.fleet import Fleet, load_fleet, require_telemetry
from fleetgauge_core.fleet.usable_fleet import load_usable_fleet
from fleetgauge_core.kafka import TopicChangeReporter, explain_telemetry_errors
from fleetgauge_core.kafka.credentials_monitor import (
    require_readable_credentials,
    wait_for_readable_credentials,
)
from fleetgauge_core.runtime.cli import ListenAddress, print_json
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.steady_clock import SteadyClock, read_wall_clock
from fleetgauge_core.runtime.supervision import request_shutdown_on_error, supervise_process
from fleetgauge_pipelines.jobs.batch_report import COUNT_NAMES, count_batch, print_batch
from fleetgauge_pipelines.jobs.lake_session import SHUTDOWN_DEADLINE_S, open_lake_for_pipeline
from fleetgauge_pipelines.jobs.metrics import StreamMetrics

if TYPE_CHECKING:
    from fleetgauge_pipelines.jobs.batch import BatchResult

#: A process without a heartbeat for this long is not alive. A normal batch takes seconds; catching up after
#: an outage, or the first start, which downloads the jars, takes minutes.
_MAX_HEARTBEAT_AGE_S = 15 * 60


def process_topics(
    config: Path,
    location: str | None,
    every_s: float | None,
    only_writer: bool,
    strict: bool,
    listen: ListenAddress | None,
    as_json: bool,
) -> None:
    """Write probe records from the telemetry topics to the lake every ``every_s`` seconds; None: once."""
    fleet = load_fleet(config) if strict else _load_processed_fleet(config)
    telemetry = require_telemetry(fleet, config)
    if strict:
        require_readable_credentials(telemetry.access, {})
    health = ProcessHealth("stream", _MAX_HEARTBEAT_AGE_S)
    metrics = StreamMetrics(health.registry)
    topic_changes = TopicChangeReporter(health.registry)
    totals = Counter(dict.fromkeys(COUNT_NAMES, 0))
    steady = SteadyClock()

    def clock() -> datetime:
        # The later one: if the clock is set back, records of the present would be refused as of the future.
        return max(steady.now(), read_wall_clock())

    def report_batch(batch_id: int, result: "BatchResult") -> None:
        print_batch(batch_id, result)
        totals.update(count_batch(result))
        metrics.record_batch(result, clock())
        health.record_heartbeat()
        health.mark_ready()

    def run(shutdown: ShutdownFlag) -> None:
        with (
            open_lake_for_pipeline(location or fleet.lake, only_writer) as (spark, lake),
            request_shutdown_on_error(shutdown),
            explain_telemetry_errors(),
        ):
            from fleetgauge_pipelines.jobs.stream import StreamTrigger, run_stream

            run_stream(
                spark,
                lake,
                fleet,
                telemetry,
                StreamTrigger(every_s),
                clock,
                report_batch,
                health.record_heartbeat,
                shutdown,
                topic_changes.report,
            )

    with supervise_process(SHUTDOWN_DEADLINE_S) as shutdown, serve_health(health, listen):
        remedy = "provide it: until then no record is processed"
        if wait_for_readable_credentials(telemetry.access, health, shutdown, remedy):
            run(shutdown)
    if as_json:
        print_json(totals)


def _load_processed_fleet(config: Path) -> Fleet:
    """Return the fleet, also if notifiers or the connections of clusters, which are not used here, are bad.

    Without a cluster's other values the stream must not run: its records would go to quarantine, and the
    weeks of the fleet would lose it.

    Raises: FleetFileError.
    """
    loaded = load_usable_fleet(config, connects=False)
    return (
        load_fleet(config) if any(problem.part == "cluster" for problem in loaded.problems) else loaded.fleet
    )
