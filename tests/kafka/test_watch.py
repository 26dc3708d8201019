"""The watch on a real topic: what it says of itself while a broker goes and comes back."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.run import run_watch
from fleetgauge_probes.contract import ProbePulse
from fleetgauge_probes.fleet import Telemetry
from fleetgauge_probes.kafka import RecordProducer
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals
from tests.exposition import samples_of
from tests.unit.pipelines.detection.pulses import at, broker, hung, pulse

DEADLINE_S = 30
NOW = at(40)
NAMED = "fleetgauge_broker_named"
HEARD = "fleetgauge_watch_pulse_timestamp_seconds"


@pytest.fixture
def telemetry(local_fleet: LocalFleet) -> Telemetry:
    suffix = uuid.uuid4().hex[:8]
    topics = {
        name: {"name": f"{name}-{suffix}", "partitions": 1, "retention_hours": 1}
        for name in ("probe_minutes", "probe_pulse", "health_events")
    }
    return Telemetry.model_validate({"bootstrap": local_fleet.bootstrap("telemetry"), "topics": topics})


@contextmanager
def _watching(telemetry: Telemetry) -> Iterator[Vitals]:
    """A watch that is ready."""
    vitals, stopping = Vitals("watch", 60), Stopping()
    metrics = WatchMetrics(vitals.registry)
    thread = threading.Thread(
        target=lambda: run_watch(
            telemetry, ["orders"], lambda: NOW, lambda _: None, (), vitals, metrics, stopping
        )
    )
    thread.start()
    try:
        _until(lambda: vitals.is_ready)
        yield vitals
    finally:
        stopping.set()
        thread.join(DEADLINE_S)
    assert not thread.is_alive()


def _until(seen: Callable[[], bool], act: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not seen():
        assert time.monotonic() < deadline
        act()
        time.sleep(0.1)


@pytest.fixture
def send(telemetry: Telemetry) -> Iterator[Callable[[ProbePulse], None]]:
    agent = RecordProducer(telemetry.access, "agent")
    agent.start()
    yield lambda one: agent.send(telemetry.topics.probe_pulse.name, one.cluster_id, one.encode())
    agent.stop()


def test_it_tells_whom_it_names_whom_it_remembers_and_when_it_last_heard_of_a_vantage(
    telemetry: Telemetry, send: Callable[[ProbePulse], None]
) -> None:
    with _watching(telemetry) as vitals:
        # Again and again, as an agent does: a watch reads from where the topic ends as it begins.
        well = pulse(15, broker(1), broker(2))
        _until(lambda: bool(samples_of(vitals.registry, HEARD)), lambda: send(well))
        assert samples_of(vitals.registry, HEARD) == {("orders", "zone-a"): at(15).timestamp()}
        send(pulse(20, hung(9, 1), broker(2)))
        _until(lambda: samples_of(vitals.registry, NAMED) == {("1", "orders"): 1, ("2", "orders"): 0})

    with _watching(telemetry) as vitals:
        assert samples_of(vitals.registry, NAMED) == {("1", "orders"): 1}
        # Too old to be judged, but it was heard.
        old = pulse(0, broker(1), vantage="zone-b")
        _until(lambda: bool(samples_of(vitals.registry, HEARD)), lambda: send(old))
        assert samples_of(vitals.registry, HEARD) == {("orders", "zone-b"): at(0).timestamp()}
        assert samples_of(vitals.registry, NAMED) == {("1", "orders"): 1}
        send(pulse(30, broker(1), broker(2)))
        _until(lambda: samples_of(vitals.registry, NAMED) == {("1", "orders"): 0, ("2", "orders"): 0})
        assert vitals.is_alive
