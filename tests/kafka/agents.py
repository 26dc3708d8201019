"""An agent in a thread of the test, on topics and with a spool of its own."""

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
from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_probes.agent.run import run_agent
from fleetgauge_probes.agent.spool import Spool

STOPPED_S = 30
#: Warming up, and a pulse that looks back on nothing but well probes.
PROBED_S = 60
PARTITIONS = {"probe_minutes": 4, "probe_pulse": 2, "health_events": 1}


def fleet_of(
    local: LocalFleet, clusters: Sequence[str], carried_by: LocalFleet | None = None
) -> tuple[Fleet, Telemetry]:
    """These clusters of a local fleet, with topics of its own or another's that nobody else writes."""
    suffix = uuid.uuid4().hex[:8]
    topics: Mapping[str, Any] = {
        kind: {"name": f"{kind}-{suffix}", "partitions": count, "retention_hours": 2}
        for kind, count in PARTITIONS.items()
    }
    measured = [{"id": one, "bootstrap": local.bootstrap(one)} for one in clusters]
    telemetry = {"bootstrap": (carried_by or local).bootstrap("telemetry"), "topics": topics}
    fleet = Fleet.model_validate({"vantage": "tests", "clusters": measured, "telemetry": telemetry})
    assert fleet.telemetry is not None
    return fleet, fleet.telemetry


@dataclass
class Agent:
    """A run; ``waiting`` and ``broken`` are known once it has ended."""

    fleet: Fleet
    telemetry: Telemetry
    folder: Path
    run_id: uuid.UUID = field(default_factory=uuid.uuid4)
    vitals: Vitals = field(default_factory=lambda: Vitals("probe", 60))
    waiting: int | None = None
    broken: BaseException | None = None

    def clusters(self) -> tuple[Cluster, ...]:
        """What it measures now; ``fleet`` may be replaced while it runs."""
        return self.fleet.clusters

    @contextmanager
    def running(self) -> Iterator["Agent"]:
        """Until the block is left; then it has ended well."""
        spool, stopping = Spool(self.folder, 1_000_000), threading.Event()
        spool.open()

        def live() -> None:
            try:
                self.waiting = run_agent(
                    self.fleet, self.telemetry, self.clusters, spool, self.run_id, self.vitals, stopping
                )
            except BaseException as error:
                self.broken = error

        self.thread = threading.Thread(target=live, name="agent")
        self.thread.start()
        try:
            yield self
        finally:
            stopping.set()
            self.thread.join(STOPPED_S)
            spool.close()
        assert not self.thread.is_alive()
        assert self.broken is None


def pulses(telemetry: Telemetry, seconds: float) -> Iterator[ProbePulse]:
    """Those that there are and those that come, for so long."""
    reader = TopicReader(telemetry.access, telemetry.topics.probe_pulse.name, "fleetgauge-tests")
    reader.start()
    try:
        reader.add(reader.partitions(seconds), from_beginning=True)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            record = reader.poll(0.5)
            if record:
                yield ProbePulse.decode(record.value)
    finally:
        reader.stop()


def probed(
    telemetry: Telemetry, cluster_id: str, homes: Sequence[int], since: datetime | None = None
) -> bool:
    """Whether a pulse comes in time by which each leads and acknowledges, and nobody's probes fail."""
    return any(
        pulse.cluster_id == cluster_id
        and (since is None or pulse.emitted_at >= since)
        and {one.broker_id for one in pulse.brokers if one.leads and len(one.legs) == 2} >= set(homes)
        and all(leg.succeeded > 10 and not leg.failed for one in pulse.brokers for leg in one.legs)
        for pulse in pulses(telemetry, PROBED_S)
    )


def probed_by_way_of_others(telemetry: Telemetry, broker_id: int, since: datetime | None = None) -> bool:
    """Whether a pulse comes in time by which it leads nothing, is in sync, and clients' probes succeed."""
    return any(
        one.broker_id == broker_id
        and (since is None or pulse.emitted_at >= since)
        and one.in_sync
        and not one.leads
        and any(leg.leg is Leg.CLIENT and leg.succeeded > 10 and not leg.failed for leg in one.legs)
        for pulse in pulses(telemetry, PROBED_S)
        for one in pulse.brokers
    )
