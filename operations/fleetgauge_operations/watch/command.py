"""What `fleetgauge watch` does."""

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.detection import Finding, FleetHealth
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import explain_telemetry_errors
from fleetgauge_core.runtime.cli import ListenAddress, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.logs import configure_logging
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.runtime.steady_clock import SteadyClock
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_operations.changes.change_receiver import ChangeReceiver
from fleetgauge_operations.changes.change_topic import ChangePublisher
from fleetgauge_operations.changes.observer_process import ObserverProcess
from fleetgauge_operations.changes.report_metrics import ReportMetrics
from fleetgauge_operations.watch.clock_step import ClockStep
from fleetgauge_operations.watch.controller import WatchController
from fleetgauge_operations.watch.message_format import summarize_finding
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.watched_fleet import WatchedFleet

#: The last attempt of each notifier takes at most 30 s; Kubernetes waits 45 s.
_SHUTDOWN_DEADLINE_S = 34
#: The main loop records a heartbeat twice a second; only a minute without one means that it hangs.
_HEARTBEAT_TIMEOUT_S = 60


def watch_fleet(
    config: Path, strict: bool, observe: bool, listen: ListenAddress | None, log_format: str, as_json: bool
) -> None:
    """Run the watch until a signal stops it. Raises: an OperationalError if it cannot start."""
    configure_logging(log_format)
    health = ProcessHealth("watch", _HEARTBEAT_TIMEOUT_S)
    watched = WatchedFleet(config, health.parts, time.monotonic, strict=strict)
    telemetry = watched.load()
    with (
        # The fleet file is read again whenever it changes, so that a lost terminal need not end the watch.
        supervise_process(_SHUTDOWN_DEADLINE_S, ends_on_hangup=False) as shutdown,
        ChangeReceiver(
            lambda: watched.fleet,
            ChangePublisher(telemetry).publish,
            lambda: datetime.now(UTC),
            ReportMetrics(health.registry),
        ) as receiver,
        serve_health(health, listen, receiver.receive),
        _run_observer(config, log_format, shutdown) if observe else nullcontext(),
    ):
        final_health = _run_watch(watched, telemetry, health, shutdown)
    if as_json:
        print_json(
            [
                {
                    "cluster": subject.cluster_id,
                    "broker": subject.broker_id,
                    "vantage": subject.vantage,
                    "kind": state,
                }
                for subject, state in final_health.open_findings()
            ]
        )


def _run_watch(
    watched: WatchedFleet, telemetry: Telemetry, health: ProcessHealth, shutdown: ShutdownFlag
) -> FleetHealth:
    fleet = watched.fleet
    console.print(
        f"watching {len(fleet.clusters)} clusters with {len(fleet.notifiers)} notifiers; stop with Ctrl+C"
    )
    metrics = WatchMetrics(health.registry)
    with explain_telemetry_errors():
        # A step is adopted when pulses confirm it, and not because it lasts: all of them would look old.
        clock = SteadyClock(adopts_after=None)
        controller = WatchController(
            watched, telemetry, clock.now, _print_finding, health, metrics, ClockStep(clock).follow
        )
        return controller.run(shutdown)


def _run_observer(config: Path, log_format: str, shutdown: ShutdownFlag) -> ObserverProcess:
    return ObserverProcess(["--config", str(config), "--log-format", log_format], shutdown)


def _print_finding(finding: Finding) -> None:
    event = finding.event
    at = event.at.strftime("%H:%M:%S")
    if finding.is_alert or finding.is_cleared:
        console.print(
            f"{at} {summarize_finding(finding)}",
            style="bold red" if finding.is_alert else "green",
        )
    else:
        console.print(
            f"{at} {event.cluster_id}: broker {event.broker_id} {event.from_state} -> {event.to_state}"
        )
