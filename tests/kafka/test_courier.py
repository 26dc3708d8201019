"""The courier on a real telemetry cluster that goes away and comes back."""

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
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_probes.agent.spool import Spool
from fleetgauge_probes.agent.spool_forwarder import Courier
from tests.probe_minutes import record
from tests.whole_topic import values_on

DEADLINE_S = 60
ROOM = 100_000_000


class Delivery(logging.Handler):
    """A courier with a spool and a topic of its own. As a handler of the log it hears of what goes wrong."""

    def __init__(self, telemetry: Telemetry, folder: Path) -> None:
        super().__init__()
        self.telemetry = telemetry
        self.spool = Spool(folder, ROOM)
        self.spool.open()
        self.fates: Counter[str] = Counter()
        self.complaints: list[str] = []
        self._news = threading.Condition()
        self.courier = self._another()

    def _another(self) -> Courier:
        return Courier(self.telemetry, self.spool, self._told, lambda: self._told("broken", 1))

    def _told(self, fate: str, records: int) -> None:
        with self._news:
            self.fates[fate] += records
            self._news.notify()

    def emit(self, record: logging.LogRecord) -> None:
        with self._news:
            self.complaints.append(record.getMessage())
            self._news.notify()

    def begin_again(self) -> None:
        self.courier = self._another()
        self.courier.start()

    def wait(self, is_so: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(lambda: is_so() or self.fates["broken"], DEADLINE_S)
        assert not self.fates["broken"]

    @property
    def is_done(self) -> bool:
        return self.spool.state().records == 0

    def on_the_topic(self) -> list[int]:
        """Every record's sequence, in its order."""
        values = values_on(self.telemetry.access, self.telemetry.topics.probe_minutes.name, DEADLINE_S)
        return [PROBE_MINUTE.decode(value)["sequence"] for value in values]


@pytest.fixture
def delivery(breakable_fleet: LocalFleet, tmp_path: Path) -> Iterator[Delivery]:
    name = uuid.uuid4().hex[:8]
    topics = {
        kind: {"name": f"{kind}-{name}", "partitions": 1, "retention_hours": 1}
        for kind in ("probe_minutes", "probe_pulse", "health_events")
    }
    bootstrap = breakable_fleet.bootstrap("telemetry")
    one = Delivery(Telemetry.model_validate({"bootstrap": bootstrap, "topics": topics}), tmp_path / "spool")
    log = logging.getLogger("fleetgauge.records")
    log.addHandler(one)
    yield one
    log.removeHandler(one)
    one.courier.stop(0)
    one.spool.close()


def firsts(sequences: list[int]) -> list[int]:
    return list(dict.fromkeys(sequences))


def test_records_arrive_in_their_order_and_leave_the_spool(delivery: Delivery) -> None:
    delivery.courier.start()
    for n in range(50):
        delivery.courier.hand([record(n)], [record(1000 + n)])
    delivery.wait(lambda: delivery.fates["delivered"] == 50)
    assert delivery.on_the_topic() == list(range(50))
    assert delivery.courier.stop(5) == 0


def test_while_telemetry_is_away_records_wait_and_then_follow_in_order(
    delivery: Delivery, breakable_fleet: LocalFleet
) -> None:
    breakable_fleet.fault("kill", "telemetry", 1)
    delivery.courier.start()
    for n in range(3000):
        delivery.courier.hand([record(n)], [])
    delivery.wait(lambda: bool(delivery.complaints))
    assert delivery.spool.state().records == 3000
    breakable_fleet.fault("heal", "telemetry", 1)
    delivery.wait(lambda: delivery.is_done)
    assert delivery.on_the_topic() == list(range(3000))
    assert delivery.fates == {"delivered": 3000}
    (complaint,) = delivery.complaints
    assert str(delivery.spool.folder) in complaint


def test_what_was_on_its_way_when_telemetry_died_arrives_again_but_is_not_overtaken(
    delivery: Delivery, breakable_fleet: LocalFleet
) -> None:
    delivery.courier.start()
    for n in range(20_000):
        delivery.courier.hand([record(n)], [])
        if n == 10_000:
            breakable_fleet.fault("kill", "telemetry", 1)
        if n == 15_000:
            breakable_fleet.fault("heal", "telemetry", 1)
    delivery.wait(lambda: delivery.is_done)
    assert firsts(delivery.on_the_topic()) == list(range(20_000))


def test_what_a_run_leaves_the_next_one_delivers(delivery: Delivery, breakable_fleet: LocalFleet) -> None:
    breakable_fleet.fault("kill", "telemetry", 1)
    delivery.courier.start()
    delivery.courier.hand([record(0), record(1)], [])
    before = time.monotonic()
    assert delivery.courier.stop(3) == 2
    assert time.monotonic() - before < 10
    breakable_fleet.fault("heal", "telemetry", 1)
    delivery.begin_again()
    delivery.wait(lambda: delivery.is_done)
    assert firsts(delivery.on_the_topic()) == [0, 1]


def test_while_the_disk_takes_nothing_records_wait_in_memory(delivery: Delivery) -> None:
    (pages,) = delivery.spool._connection.execute("PRAGMA page_count").fetchone()
    delivery.spool._connection.execute(f"PRAGMA max_page_count = {pages}")
    delivery.courier.hand([record(n) for n in range(2000)], [])
    assert delivery.spool.state().records == 0
    delivery.spool._connection.execute("PRAGMA max_page_count = 1000000")
    delivery.courier.start()
    delivery.courier.hand([record(2000)], [])
    delivery.wait(lambda: delivery.fates["delivered"] == 2001)
    assert delivery.on_the_topic() == list(range(2001))
