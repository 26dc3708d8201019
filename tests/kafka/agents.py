"""An agent in a thread of the test, with its own telemetry topics and its own spool."""

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from fleetgauge_core.contract import Leg, ProbePulse
from fleetgauge_core.fleet import Cluster, Fleet, Telemetry
from fleetgauge_core.kafka import TopicReader
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_probes.agent.run import run_agent
from fleetgauge_probes.agent.spool import Spool

STOP_TIMEOUT_S = 30
#: Enough for the warm-up and for a pulse whose window contains successful probes only.
PROBE_TIMEOUT_S = 60
PARTITIONS = {"probe_minutes": 4, "probe_pulse": 2, "health_events": 1}


def build_fleet(
    local: LocalFleet, clusters: Sequence[str], telemetry_fleet: LocalFleet | None = None
) -> tuple[Fleet, Telemetry]:
    """Return a fleet of these local clusters, and its telemetry with topics that no other test uses."""
    suffix = uuid.uuid4().hex[:8]
    topics: Mapping[str, Any] = {
        kind: {"name": f"{kind}-{suffix}", "partitions": count, "retention_hours": 2}
        for kind, count in PARTITIONS.items()
    }
    cluster_entries = [{"id": cluster, "bootstrap": local.bootstrap(cluster)} for cluster in clusters]
    telemetry = {"bootstrap": (telemetry_fleet or local).bootstrap("telemetry"), "topics": topics}
    fleet = Fleet.model_validate({"vantage": "tests", "clusters": cluster_entries, "telemetry": telemetry})
    assert fleet.telemetry is not None
    return fleet, fleet.telemetry


@dataclass
class Agent:
    """An agent; ``unsent_records`` and ``error`` are set once its run has ended."""

    fleet: Fleet
    telemetry: Telemetry
    folder: Path
    run_id: uuid.UUID = field(default_factory=uuid.uuid4)
    health: ProcessHealth = field(default_factory=lambda: ProcessHealth("probe", 60))
    unsent_records: int | None = None
    error: BaseException | None = None

    def clusters(self) -> tuple[Cluster, ...]:
        """Return the clusters to measure; ``fleet`` may be replaced while the agent runs."""
        return self.fleet.clusters

    @contextmanager
    def running(self) -> Iterator["Agent"]:
        """Run the agent until the block is left, then check that it ended without an error."""
        spool, shutdown = Spool(self.folder, 1_000_000), threading.Event()
        spool.open()

        def run() -> None:
            try:
                self.unsent_records = run_agent(
                    self.fleet, self.telemetry, self.clusters, spool, self.run_id, self.health, shutdown
                )
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run, name="agent")
        self.thread.start()
        try:
            yield self
        finally:
            shutdown.set()
            self.thread.join(STOP_TIMEOUT_S)
            spool.close()
        assert not self.thread.is_alive()
        assert self.error is None


def read_pulses(telemetry: Telemetry, seconds: float) -> Iterator[ProbePulse]:
    """Yield the existing pulses and those that arrive within so many seconds."""
    reader = TopicReader(telemetry.access, telemetry.topics.probe_pulse.name, "fleetgauge-tests")
    reader.start()
    try:
        reader.assign(reader.wait_for_partitions(seconds), from_beginning=True)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            record = reader.poll(0.5)
            if record:
                yield ProbePulse.decode(record.value)
    finally:
        reader.stop()


def has_successful_probes(
    telemetry: Telemetry, cluster_id: str, homes: Sequence[int], since: datetime | None = None
) -> bool:
    """Wait for a pulse in which each home leads and acknowledges, and no broker's probes fail."""
    return any(
        pulse.cluster_id == cluster_id
        and (since is None or pulse.emitted_at >= since)
        and {broker.broker_id for broker in pulse.brokers if broker.leads and len(broker.legs) == 2}
        >= set(homes)
        and all(leg.succeeded > 10 and not leg.failed for broker in pulse.brokers for leg in broker.legs)
        for pulse in read_pulses(telemetry, PROBE_TIMEOUT_S)
    )


def is_probed_through_other_leaders(
    telemetry: Telemetry, broker_id: int, since: datetime | None = None
) -> bool:
    """Wait for a pulse in which the broker is in sync without leading, and its client probes succeed."""
    return any(
        broker.broker_id == broker_id
        and (since is None or pulse.emitted_at >= since)
        and broker.in_sync
        and not broker.leads
        and any(leg.leg is Leg.CLIENT and leg.succeeded > 10 and not leg.failed for leg in broker.legs)
        for pulse in read_pulses(telemetry, PROBE_TIMEOUT_S)
        for broker in pulse.brokers
    )
