"""Which sinks are open as the fleet file changes, and what their notifiers are sent."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_core.detection import Finding, FindingSubject, HealthState
from fleetgauge_core.fleet import Fleet, Notifier
from fleetgauge_core.kafka import LeadershipStatus
from fleetgauge_operations.notify.outbox import Settlement
from fleetgauge_operations.watch import finding_sinks
from fleetgauge_operations.watch.detection_loop import ReceivedPulses
from fleetgauge_operations.watch.finding_sinks import FindingSinks
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifier_context import NotifierContext
from fleetgauge_operations.watch.state_store import DeliveryRecord
from fleetgauge_operations.watch.suppression import SuppressedFindings
from tests.exposition import samples_of
from tests.unit.operations.watch.sample_findings import BROKER, NOON, cleared, opened

WAITING = "fleetgauge_notifications_waiting"
NONE_SUPPRESSED = SuppressedFindings()
OPEN = ((BROKER, HealthState.BROKER_DOWN),)


@dataclass
class MemorySink:
    """A sink that keeps what it is given, and whose receiver may hang while it stops."""

    notifier: Notifier
    context: NotifierContext
    may_stop: Event
    notified: list[Finding] = field(default_factory=list)
    resumed: list[FindingSubject] = field(default_factory=list)

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.may_stop.wait()

    def notify(self, finding: Finding) -> None:
        self.context.add_waiting(1)
        self.notified.append(finding)

    def settle(self, finding: Finding) -> None:
        self.context.add_waiting(-1)
        self.context.settle(finding, Settlement.DELIVERED)

    def postpone(self, finding: Finding) -> None:
        self.context.postpone(finding)

    def resume(self, findings: Iterable[tuple[FindingSubject, HealthState]]) -> None:
        self.resumed += [subject for subject, _ in findings]


@dataclass
class MemoryStore:
    """The findings that are known, and the delivery records that were saved."""

    findings: deque[Finding] = field(default_factory=deque)
    saved: list[DeliveryRecord] = field(default_factory=list)

    def save_delivery(self, record: DeliveryRecord) -> None:
        self.saved.append(record)


class HeldLeadership:
    def confirm(self) -> LeadershipStatus:
        return LeadershipStatus.HELD


@dataclass
class Notified:
    """Sinks in memory; the receivers of all hang until ``may_stop``."""

    may_stop: Event = field(default_factory=Event)
    store: MemoryStore = field(default_factory=MemoryStore)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    opened: list[MemorySink] = field(default_factory=list)

    def __post_init__(self) -> None:
        memory: Any = self.store
        leadership: Any = HeldLeadership()
        metrics = WatchMetrics(self.registry)
        self.sinks = FindingSinks(
            memory, {}, leadership, ReceivedPulses(), lambda _: (), lambda: NOON, metrics
        )

    def open(self, notifier: Notifier, _: Any, context: NotifierContext, __: Any) -> MemorySink:
        sink = MemorySink(notifier, context, self.may_stop)
        self.opened.append(sink)
        return sink

    def adopt(self, *urls: str, page_url: str | None = None) -> None:
        notifiers = [{"kind": "webhook", "url": url} for url in urls]
        document = {
            "clusters": [{"id": "a", "bootstrap": "a:1"}],
            "notifiers": notifiers,
            "page_url": page_url,
        }
        self.sinks.adopt_fleet(Fleet.model_validate(document), OPEN, NONE_SUPPRESSED)

    def publish(self, finding: Finding) -> None:
        self.store.findings.append(finding)
        for sink in self.sinks:
            sink.notify(finding)

    def waiting(self) -> dict[tuple[str, ...], float]:
        return samples_of(self.registry, WAITING)


@pytest.fixture
def notified(monkeypatch: pytest.MonkeyPatch) -> Notified:
    notified = Notified()
    monkeypatch.setattr(finding_sinks, "open_sink", notified.open)
    return notified


def test_a_notifier_that_stays_keeps_its_sink_and_another_is_sent_the_open_findings(
    notified: Notified,
) -> None:
    notified.adopt("http://first")
    notified.publish(opened())
    notified.adopt("http://first", "http://second")
    first, second = notified.opened
    assert list(notified.sinks) == [first, second]
    assert first.notified == second.notified == [opened()]
    assert second.resumed == [BROKER]
    notified.adopt("http://second", "http://first")
    assert len(notified.opened) == 2


def test_a_receiver_that_hangs_delays_no_change_and_is_sent_nothing_more(notified: Notified) -> None:
    notified.adopt("http://hangs", "http://stays")
    hanging, _ = notified.opened
    notified.publish(opened())
    notified.adopt("http://stays")
    # The sink is still being stopped, and its last attempt must neither send nor record anything.
    assert not hanging.context.confirm_leadership()
    saved = len(notified.store.saved)
    hanging.settle(opened())
    assert len(notified.store.saved) == saved
    assert notified.waiting() == {("stays",): 1}
    notified.may_stop.set()


def test_a_changed_notifier_continues_where_its_sink_was_closed(notified: Notified) -> None:
    notified.adopt("http://hook")
    (before,) = notified.opened
    resolution = cleared()
    for finding in (opened(), resolution):
        notified.publish(finding)
    before.settle(opened())
    notified.adopt("http://hook", page_url="http://pages")
    _, after = notified.opened
    assert after.notified == [resolution]
    assert notified.waiting() == {("hook",): 1}
    notified.may_stop.set()
    notified.sinks.stop()


def test_a_notifier_that_returns_is_sent_only_what_is_open(notified: Notified) -> None:
    notified.adopt("http://hook", "http://stays")
    notified.adopt("http://stays")
    for finding in (cleared(), opened()):
        notified.publish(finding)
    notified.adopt("http://hook", "http://stays")
    assert notified.opened[-1].notified == [opened()]
    notified.may_stop.set()
