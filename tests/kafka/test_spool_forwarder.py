"""The spool forwarder with a real telemetry cluster that fails and recovers."""

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import keep_telemetry_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_probes.agent.spool import Spool
from fleetgauge_probes.agent.spool_forwarder import SpoolForwarder
from tests.probe_minutes import record
from tests.topic_values import read_values

DEADLINE_S = 60
MAX_SPOOL_BYTES = 100_000_000


class Forwarding(logging.Handler):
    """A forwarder with its own spool and topics; as a log handler it collects the forwarder's warnings."""

    def __init__(self, telemetry: Telemetry, folder: Path) -> None:
        super().__init__()
        self.telemetry = telemetry
        self.spool = Spool(folder, MAX_SPOOL_BYTES)
        self.spool.open()
        self.counts: Counter[str] = Counter()
        self.warnings: list[str] = []
        self._changed = threading.Condition()
        self.forwarder = self._create_forwarder()

    def _create_forwarder(self) -> SpoolForwarder:
        topics = keep_telemetry_topics(self.telemetry)
        return SpoolForwarder(self.telemetry, self.spool, self._count, topics)

    def _count(self, outcome: str, records: int) -> None:
        with self._changed:
            self.counts[outcome] += records
            self._changed.notify()

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            self.warnings.append(record.getMessage())
            self._changed.notify()

    def restart(self) -> None:
        self.forwarder = self._create_forwarder()
        self.forwarder.start()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, DEADLINE_S)

    @property
    def is_spool_empty(self) -> bool:
        return self.spool.read_state().records == 0

    def read_sequences(self) -> list[int]:
        """Return the sequence number of every record on the topic, in order."""
        values = read_values(self.telemetry.access, self.telemetry.topics.probe_minutes.name, DEADLINE_S)
        return [PROBE_MINUTE.decode(value)["sequence"] for value in values]


@pytest.fixture
def forwarding(breakable_fleet: LocalFleet, tmp_path: Path) -> Iterator[Forwarding]:
    name = uuid.uuid4().hex[:8]
    topics = {
        kind: {"name": f"{kind}-{name}", "partitions": 1, "retention_hours": 1}
        for kind in ("probe_minutes", "probe_pulse", "health_events")
    }
    bootstrap = breakable_fleet.bootstrap("telemetry")
    forwarding = Forwarding(
        Telemetry.model_validate({"bootstrap": bootstrap, "topics": topics}), tmp_path / "spool"
    )
    log = logging.getLogger("fleetgauge.records")
    log.addHandler(forwarding)
    yield forwarding
    log.removeHandler(forwarding)
    forwarding.forwarder.stop(0)
    forwarding.spool.close()


def drop_repeats(sequences: list[int]) -> list[int]:
    return list(dict.fromkeys(sequences))


def test_records_arrive_in_order_and_leave_the_spool(forwarding: Forwarding) -> None:
    forwarding.forwarder.start()
    for n in range(50):
        forwarding.forwarder.store([record(n)], [record(1000 + n)])
    forwarding.wait_until(lambda: forwarding.counts["delivered"] == 50)
    assert forwarding.read_sequences() == list(range(50))
    assert forwarding.forwarder.stop(5) == 0


def test_records_wait_while_the_telemetry_cluster_is_down_and_then_arrive_in_order(
    forwarding: Forwarding, breakable_fleet: LocalFleet
) -> None:
    breakable_fleet.fault("kill", "telemetry", 1)
    forwarding.forwarder.start()
    for n in range(3000):
        forwarding.forwarder.store([record(n)], [])
    forwarding.wait_until(lambda: bool(forwarding.warnings))
    assert forwarding.spool.read_state().records == 3000
    breakable_fleet.fault("heal", "telemetry", 1)
    forwarding.wait_until(lambda: forwarding.is_spool_empty)
    assert forwarding.read_sequences() == list(range(3000))
    assert forwarding.counts == {"delivered": 3000}
    (warning,) = forwarding.warnings
    assert str(forwarding.spool.folder) in warning


def test_records_in_flight_at_a_failure_are_sent_again_without_changing_the_order(
    forwarding: Forwarding, breakable_fleet: LocalFleet
) -> None:
    forwarding.forwarder.start()
    for n in range(20_000):
        forwarding.forwarder.store([record(n)], [])
        if n == 10_000:
            breakable_fleet.fault("kill", "telemetry", 1)
        if n == 15_000:
            breakable_fleet.fault("heal", "telemetry", 1)
    forwarding.wait_until(lambda: forwarding.is_spool_empty)
    assert drop_repeats(forwarding.read_sequences()) == list(range(20_000))


def test_the_next_run_delivers_the_records_that_the_previous_run_left(
    forwarding: Forwarding, breakable_fleet: LocalFleet
) -> None:
    breakable_fleet.fault("kill", "telemetry", 1)
    forwarding.forwarder.start()
    forwarding.forwarder.store([record(0), record(1)], [])
    before = time.monotonic()
    assert forwarding.forwarder.stop(3) == 2
    assert time.monotonic() - before < 10
    breakable_fleet.fault("heal", "telemetry", 1)
    forwarding.restart()
    forwarding.wait_until(lambda: forwarding.is_spool_empty)
    assert drop_repeats(forwarding.read_sequences()) == [0, 1]


def test_records_wait_in_memory_while_the_disk_is_full(forwarding: Forwarding) -> None:
    (pages,) = forwarding.spool._connection.execute("PRAGMA page_count").fetchone()
    forwarding.spool._connection.execute(f"PRAGMA max_page_count = {pages}")
    forwarding.forwarder.store([record(n) for n in range(2000)], [])
    assert forwarding.spool.read_state().records == 0
    forwarding.spool._connection.execute("PRAGMA max_page_count = 1000000")
    forwarding.forwarder.start()
    forwarding.forwarder.store([record(2000)], [])
    forwarding.wait_until(lambda: forwarding.counts["delivered"] == 2001)
    assert forwarding.read_sequences() == list(range(2001))
