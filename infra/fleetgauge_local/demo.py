"""The demo: a real fleet, all Fleetgauge services, and optionally a fault that must be detected.

A topology with mirrors also gets application traffic and `recover run`, which tracks failover readiness.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import urllib3

from fleetgauge_core.contract import HealthEvent, Leg, ProbePulse
from fleetgauge_core.fleet import Fleet, Telemetry, load_fleet
from fleetgauge_core.kafka import (
    ConsumerGroups,
    KafkaUnavailableError,
    TopicReader,
    ensure_telemetry_topics,
)
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_dashboards.operator_key import KEY_VARIABLE, format_operator_url, generate_key
from fleetgauge_local.errors import LocalFleetError, NotReadyError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.lake_counts import LakeCounts, count_rows, has_processed_minute
from fleetgauge_local.layout import HOST, TOPOLOGIES, Topology
from fleetgauge_local.runner_protocol import BrokerFault, FaultKind
from fleetgauge_local.services import Services, ServiceSpec
from fleetgauge_local.traffic import BILLING, build_traffic_service, find_aggregate, read_committed

_READY_S = 180
_CATCH_UP_S = 600
_DETECTION_S = 90
_POLL_S = 0.5
_RESPONSE_TIMEOUT_S = 2
#: A fault needs a baseline before it, and time to heal before the demo ends.
FAULT_AFTER_S = 20
FAULT_LASTS_S = 60

ReportProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BrokerDetection:
    """The broker that was reported down, and the seconds from the fault until the event was received."""

    cluster: str
    broker: int
    after_s: float


@dataclass(frozen=True, slots=True)
class RunningDemo:
    """A running demo whose services are all ready.

    ``operator_url`` is the link that lets a browser acknowledge alerts and add corrections.
    """

    local: LocalFleet
    services: Services
    fleet: Fleet
    telemetry: Telemetry
    page_url: str
    operator_url: str
    seconds_to_ready: float

    @property
    def with_mirrors(self) -> bool:
        """Whether the fleet replicates between regions."""
        return bool(self.fleet.recovery.mirrors)

    @property
    def brokers(self) -> int:
        """The number of measured brokers, without the telemetry cluster's."""
        measured = {cluster.id for cluster in self.fleet.clusters}
        return sum(
            len(cluster.brokers) for cluster in self.local.status().clusters if cluster.cluster in measured
        )


@contextmanager
def running_demo(
    directory: Path,
    port: int,
    progress: ReportProgress,
    started: float,
    shutdown: ShutdownFlag,
    past: Path | None = None,
    topology: Topology = TOPOLOGIES["clusters"],
) -> Iterator[RunningDemo]:
    """Start the fleet and all services, yield when they are ready, and end them when the context is left.

    ``started``: the monotonic time at which the command began. ``past``: the fleet.yaml of a second,
    simulated fleet that the dashboard shows. ``shutdown`` is set when the demo begins to end.

    Raises: NotReadyError when a part is not ready in time; LocalFleetError when one cannot start or ends.
    """
    local = LocalFleet(directory, topology.clusters, mirrors=topology.mirrors, progress=progress)
    local.start(fresh=True)
    try:
        fleet = load_fleet(local.fleet_file)
        telemetry = _telemetry(fleet, local.fleet_file)
        progress("creating the telemetry topics")
        ensure_telemetry_topics(telemetry)
        # The flag is set before anything is ended, so that the deadline holds for all of it.
        with Services(directory / "logs") as services, ExitStack() as ending:
            ending.callback(shutdown.set)
            page_url, key = f"http://{HOST}:{port}/", generate_key()
            for spec in _list_services(
                local.fleet_file, past, port, key, with_mirrors=bool(topology.mirrors)
            ):
                services.start(spec)
            _wait_until_probing(telemetry, fleet, services, progress)
            if topology.mirrors:
                _wait_until_consuming(fleet, services, progress)
            _wait_for_page(page_url, services, progress)
            operator_url = format_operator_url(page_url, key)
            seconds_to_ready = time.monotonic() - started
            yield RunningDemo(local, services, fleet, telemetry, page_url, operator_url, seconds_to_ready)
    finally:
        shutdown.set()
        progress("ending all services and brokers")
        local.stop()


def _list_services(
    config: Path, past: Path | None, port: int, operator_key: str, with_mirrors: bool
) -> tuple[ServiceSpec, ...]:
    """Return the services in start order: the agent first at normal priority, Spark last at the lowest."""
    with_config = ("--config", str(config))
    with_both = (*with_config, "--config", str(past)) if past else with_config
    recover = ServiceSpec("recover", ("recover", "run", "--execute", *with_config), nice=10)
    dash = ServiceSpec(
        "dash", ("dash", *with_both, "--port", str(port)), nice=5, environment={KEY_VARIABLE: operator_key}
    )
    return (
        ServiceSpec("probe", ("probe", *with_config)),
        ServiceSpec("watch", ("watch", *with_config)),
        ServiceSpec("observe", ("observe", *with_config), nice=5),
        *((build_traffic_service(config), recover) if with_mirrors else ()),
        dash,
        ServiceSpec("stream", ("stream", *with_config), nice=15, grace_s=110),
    )


def _telemetry(fleet: Fleet, path: Path) -> Telemetry:
    if fleet.telemetry is None:
        raise LocalFleetError(
            f"{path}: telemetry is missing: start the demo with --dir set to another folder"
        )
    return fleet.telemetry


def _wait_until_probing(
    telemetry: Telemetry, fleet: Fleet, services: Services, progress: ReportProgress
) -> None:
    """Wait until the pulses of every cluster show successful probes of all brokers on all legs."""
    reader = TopicReader(telemetry.access, telemetry.topics.probe_pulse.name, "fleetgauge-demo")
    reader.start()
    reader.assign(reader.wait_for_partitions(), from_beginning=True)
    waiting = {cluster.id for cluster in fleet.clusters}
    deadline = time.monotonic() + _READY_S
    try:
        while waiting:
            services.check_running()
            progress(f"waiting for the first probes of {', '.join(sorted(waiting))}")
            if time.monotonic() > deadline:
                raise NotReadyError(
                    f"no probes of {', '.join(sorted(waiting))}: see {services.log_path('probe')}"
                )
            record = reader.poll(_POLL_S)
            if record:
                pulse = ProbePulse.decode(record.value)
                if _all_acknowledge(pulse):
                    waiting.discard(pulse.cluster_id)
    finally:
        reader.stop()


def _all_acknowledge(pulse: ProbePulse) -> bool:
    legs = [broker.leg_pulse(leg) for broker in pulse.brokers for leg in Leg]
    return bool(legs) and all(leg is not None and leg.succeeded > 0 for leg in legs)


def _wait_until_consuming(fleet: Fleet, services: Services, progress: ReportProgress) -> None:
    """Wait until a group has committed an offset of a replicated record."""
    cluster = find_aggregate(fleet)
    groups = ConsumerGroups(cluster.access, "fleetgauge-demo", _RESPONSE_TIMEOUT_S)
    groups.start()
    deadline = time.monotonic() + _READY_S
    try:
        while not _has_committed(groups):
            services.check_running()
            progress(f"waiting for group {BILLING.group} to consume in {cluster.id}")
            if time.monotonic() > deadline:
                raise NotReadyError(
                    f"group {BILLING.group} has not committed an offset: see {services.log_path('traffic')}"
                )
            time.sleep(_POLL_S)
    finally:
        groups.stop()


def _has_committed(groups: ConsumerGroups) -> bool:
    try:
        return bool(read_committed(groups, BILLING))
    except KafkaUnavailableError:
        return False


def _wait_for_page(url: str, services: Services, progress: ReportProgress) -> None:
    progress("waiting for the dashboard")
    deadline = time.monotonic() + _READY_S
    while read_page_status(url) != 200:
        services.check_running()
        if time.monotonic() > deadline:
            raise NotReadyError(f"{url} does not respond: see {services.log_path('dash')}")
        time.sleep(_POLL_S)


def read_page_status(url: str) -> int | None:
    """Return the HTTP status of a page; None if the server does not respond."""
    try:
        return urllib3.request("GET", url, timeout=10, retries=False).status
    except urllib3.exceptions.HTTPError:
        return None


def inject_fault(running: RunningDemo, kind: FaultKind) -> BrokerFault:
    """Inject a fault into the last broker of one cluster for FAULT_LASTS_S seconds, and return it.

    The cluster is the first one; with mirrors, the active cluster of the failover groups.
    """
    cluster = (find_aggregate(running.fleet) if running.with_mirrors else running.fleet.clusters[0]).id
    broker = max(
        broker.broker
        for status in running.local.status().clusters
        if status.cluster == cluster
        for broker in status.brokers
    )
    return running.local.fault(
        kind, cluster, broker, for_s=FAULT_LASTS_S, delay_ms=50 if kind == "slow" else None
    )


def wait_for_detection(
    running: RunningDemo, since: datetime, progress: ReportProgress
) -> BrokerDetection | None:
    """Return the first broker that the watch reports as down at or after ``since``; None at the deadline."""
    topic = running.telemetry.topics.health_events.name
    reader = TopicReader(running.telemetry.access, topic, "fleetgauge-demo")
    reader.start()
    reader.assign(reader.wait_for_partitions(), from_beginning=True)
    deadline = time.monotonic() + _DETECTION_S
    try:
        while time.monotonic() < deadline:
            progress("waiting for the watch to detect the broker")
            record = reader.poll(_POLL_S)
            event = HealthEvent.decode(record.value) if record else None
            if (
                event
                and event.broker_id is not None
                and event.to_state == "BROKER_DOWN"
                and event.at >= since
            ):
                after_s = (datetime.now(UTC) - since).total_seconds()
                return BrokerDetection(event.cluster_id, event.broker_id, after_s)
    finally:
        reader.stop()
    return None


def run_for(seconds: float, running: RunningDemo, progress: ReportProgress, activity: str) -> None:
    """Keep the demo running for a time.

    Raises: LocalFleetError when a service ends by itself.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        progress(f"{activity}, {left:.0f} s left")
        running.services.check_running()
        time.sleep(min(_POLL_S, left))


def wait_until_caught_up(running: RunningDemo, now: datetime, progress: ReportProgress) -> LakeCounts:
    """Wait until the silver and gold tables hold every minute complete at ``now``; return row counts.

    Raises: NotReadyError at the deadline.
    """
    # The agent emits a minute's records when its last probe has an outcome, at most 13 s after its end.
    last_closed = (now - timedelta(seconds=75)).replace(second=0, microsecond=0)
    lake = Path(running.fleet.lake)
    clusters = [cluster.id for cluster in running.fleet.clusters]
    deadline = time.monotonic() + _CATCH_UP_S
    while not has_processed_minute(lake, clusters, last_closed):
        running.services.check_running()
        progress(f"waiting for {last_closed:%H:%M} UTC to reach the weekly tables")
        if time.monotonic() > deadline:
            log = running.services.log_path("stream")
            raise NotReadyError(f"the weekly tables do not contain {last_closed:%H:%M} UTC: see {log}")
        time.sleep(_POLL_S)
    return count_rows(lake)
