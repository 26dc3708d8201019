"""The demo: a real fleet, all of Fleetgauge on it, and on demand a fault that must be named.

On a topology with mirrors, something that uses them as well, and readiness for another region.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import urllib3

from fleetgauge_core.contract import HealthEvent, Leg, ProbePulse
from fleetgauge_core.fleet import Fleet, Telemetry, load
from fleetgauge_core.kafka import (
    Groups,
    KafkaUnavailableError,
    TopicReader,
    ensure_topics,
)
from fleetgauge_local.errors import LocalFleetError, NotReadyError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.lake_counts import LakeCounts, counts, holds_minute
from fleetgauge_local.layout import HOST, TOPOLOGIES, Topology
from fleetgauge_local.messages import Fault, Kind
from fleetgauge_local.services import Services, ServiceSpec
from fleetgauge_local.traffic import BILLING, aggregate, committed, traffic_spec

_READY_S = 180
_CAUGHT_UP_S = 600
_NAMED_S = 90
_POLL_S = 0.5
_ANSWER_S = 2
#: A fault needs a past to stand out from, and time to heal before the end.
FAULT_AFTER_S = 20
FAULT_LASTS_S = 60

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Named:
    """Who was named, and how long after the fault the news was here."""

    cluster: str
    broker: int
    after_s: float


@dataclass(frozen=True, slots=True)
class Running:
    """A demo that is ready."""

    local: LocalFleet
    services: Services
    fleet: Fleet
    telemetry: Telemetry
    page_url: str
    seconds_to_ready: float

    @property
    def with_mirrors(self) -> bool:
        """Whether regions stand in for each other."""
        return bool(self.fleet.recovery.mirrors)

    @property
    def brokers(self) -> int:
        """Measured ones; the telemetry cluster's are not."""
        measured = {cluster.id for cluster in self.fleet.clusters}
        return sum(len(one.brokers) for one in self.local.status().clusters if one.cluster in measured)


@contextmanager
def running_demo(
    directory: Path,
    port: int,
    say: Say,
    started: float,
    past: Path | None = None,
    topology: Topology = TOPOLOGIES["clusters"],
) -> Iterator[Running]:
    """Everything started and ready; everything ended when the block is left.

    ``started``: the monotonic time from which readiness is counted. ``past``: the fleet.yaml of a
    second fleet that the page shows.
    """
    local = LocalFleet(directory, topology.clusters, mirrors=topology.mirrors, progress=say)
    local.start(fresh=True)
    try:
        fleet = load(local.fleet_file)
        telemetry = _telemetry(fleet, local.fleet_file)
        say("making topics")
        ensure_topics(telemetry)
        with Services(directory / "logs") as services:
            for spec in _specs(local.fleet_file, past, port, with_mirrors=bool(topology.mirrors)):
                services.start(spec)
            page_url = f"http://{HOST}:{port}/"
            _wait_until_probing(telemetry, fleet, services, say)
            if topology.mirrors:
                _wait_until_consuming(fleet, services, say)
            _wait_for_page(page_url, services, say)
            yield Running(local, services, fleet, telemetry, page_url, time.monotonic() - started)
    finally:
        say("ending everything that was started")
        local.stop()


def _specs(config: Path, past: Path | None, port: int, with_mirrors: bool) -> tuple[ServiceSpec, ...]:
    """The agent first and undisturbed; Spark last and yielding to everything else."""
    with_config = ("--config", str(config))
    with_both = (*with_config, "--config", str(past)) if past else with_config
    recover = ServiceSpec("recover", ("recover", "run", "--execute", *with_config), nice=10)
    return (
        ServiceSpec("probe", ("probe", *with_config)),
        ServiceSpec("watch", ("watch", *with_config)),
        *((traffic_spec(config), recover) if with_mirrors else ()),
        ServiceSpec("dash", ("dash", *with_both, "--port", str(port)), nice=5),
        ServiceSpec("stream", ("stream", *with_config), nice=15, grace_s=110),
    )


def _telemetry(fleet: Fleet, path: Path) -> Telemetry:
    if fleet.telemetry is None:
        raise LocalFleetError(f"{path}: no telemetry cluster")
    return fleet.telemetry


def _wait_until_probing(telemetry: Telemetry, fleet: Fleet, services: Services, say: Say) -> None:
    """Until the pulses say that every cluster's every broker acknowledges."""
    reader = TopicReader(telemetry.access, telemetry.topics.probe_pulse.name, "fleetgauge-demo")
    reader.start()
    reader.add(reader.partitions(), from_beginning=True)
    waiting = {cluster.id for cluster in fleet.clusters}
    deadline = time.monotonic() + _READY_S
    try:
        while waiting:
            services.check()
            say(f"waiting for the first probes of {', '.join(sorted(waiting))}")
            if time.monotonic() > deadline:
                raise NotReadyError(f"no probes of {', '.join(sorted(waiting))}: see {services.log('probe')}")
            record = reader.poll(_POLL_S)
            if record:
                pulse = ProbePulse.decode(record.value)
                if _all_acknowledge(pulse):
                    waiting.discard(pulse.cluster_id)
    finally:
        reader.stop()


def _all_acknowledge(pulse: ProbePulse) -> bool:
    legs = [broker.leg(leg) for broker in pulse.brokers for leg in Leg]
    return bool(legs) and all(leg is not None and leg.succeeded > 0 for leg in legs)


def _wait_until_consuming(fleet: Fleet, services: Services, say: Say) -> None:
    """Until a group has committed what has come through a mirror."""
    cluster = aggregate(fleet)
    groups = Groups(cluster.access, "fleetgauge-demo", _ANSWER_S)
    groups.start()
    deadline = time.monotonic() + _READY_S
    try:
        while not _has_committed(groups):
            services.check()
            say(f"waiting for {BILLING.group} to read in {cluster.id}")
            if time.monotonic() > deadline:
                raise NotReadyError(f"{BILLING.group} has committed nothing: see {services.log('traffic')}")
            time.sleep(_POLL_S)
    finally:
        groups.stop()


def _has_committed(groups: Groups) -> bool:
    try:
        return bool(committed(groups, BILLING))
    except KafkaUnavailableError:
        return False


def _wait_for_page(url: str, services: Services, say: Say) -> None:
    say("waiting for the page")
    deadline = time.monotonic() + _READY_S
    while page_status(url) != 200:
        services.check()
        if time.monotonic() > deadline:
            raise NotReadyError(f"{url} does not answer: see {services.log('dash')}")
        time.sleep(_POLL_S)


def page_status(url: str) -> int | None:
    """The page's HTTP status; None where nobody answers."""
    try:
        return urllib3.request("GET", url, timeout=10, retries=False).status
    except urllib3.exceptions.HTTPError:
        return None


def hurt(running: Running, kind: Kind) -> Fault:
    """Break one broker for a while: the last of the first cluster, or of the one where groups read that may
    go on elsewhere; never the telemetry's.
    """
    cluster = (aggregate(running.fleet) if running.with_mirrors else running.fleet.clusters[0]).id
    broker = max(b.broker for c in running.local.status().clusters if c.cluster == cluster for b in c.brokers)
    return running.local.fault(
        kind, cluster, broker, for_s=FAULT_LASTS_S, delay_ms=50 if kind == "slow" else None
    )


def wait_until_named(running: Running, since: datetime, say: Say) -> Named | None:
    """The first broker that the watch names after an instant, whichever it is; None if it names nobody."""
    topic = running.telemetry.topics.health_events.name
    reader = TopicReader(running.telemetry.access, topic, "fleetgauge-demo")
    reader.start()
    reader.add(reader.partitions(), from_beginning=True)
    deadline = time.monotonic() + _NAMED_S
    try:
        while time.monotonic() < deadline:
            say("waiting for the watch to name the broker")
            record = reader.poll(_POLL_S)
            event = HealthEvent.decode(record.value) if record else None
            if (
                event
                and event.broker_id is not None
                and event.to_state == "BROKER_DOWN"
                and event.at >= since
            ):
                after_s = (datetime.now(UTC) - since).total_seconds()
                return Named(event.cluster_id, event.broker_id, after_s)
    finally:
        reader.stop()
    return None


def wait_for(seconds: float, running: Running, say: Say, doing: str) -> None:
    """Let it run, and notice if a part of it ends."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        say(f"{doing}, {left:.0f} s left")
        running.services.check()
        time.sleep(min(_POLL_S, left))


def wait_until_caught_up(running: Running, now: datetime, say: Say) -> LakeCounts:
    """Until silver and gold hold every minute that was closed by ``now``; returns what the tables hold."""
    # A minute's records are out when its last probes are decided, 13 s after its end at the latest.
    last_closed = (now - timedelta(seconds=75)).replace(second=0, microsecond=0)
    lake = Path(running.fleet.lake)
    clusters = [cluster.id for cluster in running.fleet.clusters]
    deadline = time.monotonic() + _CAUGHT_UP_S
    while not holds_minute(lake, clusters, last_closed):
        running.services.check()
        say(f"waiting for {last_closed:%H:%M} UTC to reach the weekly tables")
        if time.monotonic() > deadline:
            log = running.services.log("stream")
            raise NotReadyError(f"the tables do not hold {last_closed:%H:%M} UTC: see {log}")
        time.sleep(_POLL_S)
    return counts(lake)
