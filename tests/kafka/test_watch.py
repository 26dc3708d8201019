"""Watches on real topics: what one says of itself, and how the next goes on where it ended."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import (
    Chain,
    Finding,
    HistoryOf,
    Phase,
    Subject,
    Took,
)
from fleetgauge_core.detection.finding import finding
from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import RecordProducer, ensure_state_topic, ensure_topics
from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.slo.burn import BurnMinute
from fleetgauge_core.tables import CORRECTIONS
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.run import Watch
from fleetgauge_operations.watch.state_store import Memory, Told
from tests.browser.lake import put
from tests.exposition import samples_of
from tests.probe_minutes import CLIENT, MINUTE, NOON
from tests.receiver import Receiver
from tests.unit.core.detection.pulses import (
    at,
    broker,
    hung,
    pulse,
)
from tests.unit.operations.watch.tellings import cleared, named, planned
from tests.waiting import wait_until

DEADLINE_S = 60
NOW = at(40)
ACTIVE = "fleetgauge_watch_active"
NAMED = "fleetgauge_broker_named"
IGNORED = "fleetgauge_watch_pulses_ignored_total"
HEARD = "fleetgauge_watch_pulse_timestamp_seconds"


@pytest.fixture
def telemetry(local_fleet: LocalFleet) -> Telemetry:
    suffix = uuid.uuid4().hex[:8]
    topics: dict[str, Any] = {
        name: {"name": f"{name}-{suffix}", "partitions": 1, "retention_hours": 1}
        for name in ("probe_minutes", "probe_pulse", "health_events")
    }
    topics["watch_state"] = {"name": f"watch-state-{suffix}"}
    return Telemetry.model_validate({"bootstrap": local_fleet.bootstrap("telemetry"), "topics": topics})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as one:
        yield one


@pytest.fixture
def send(telemetry: Telemetry) -> Iterator[Callable[[ProbePulse], None]]:
    agent = RecordProducer(telemetry.access, "agent")
    agent.start()
    yield lambda one: agent.send(telemetry.topics.probe_pulse.name, one.cluster_id, one.encode())
    agent.stop()


@contextmanager
def _watching(
    telemetry: Telemetry,
    *notifiers: dict[str, str],
    lake: Path = Path("no-lake"),
    clock: Callable[[], datetime] = lambda: NOW,
) -> Iterator[Vitals]:
    """A watch that is ready: it watches, or waits for its turn."""
    clusters = [{"id": "orders", "bootstrap": "nobody:1"}]
    fleet = Fleet.model_validate({"clusters": clusters, "notifiers": notifiers, "lake": str(lake)})
    vitals, stopping = Vitals("watch", 60), Stopping()
    watch = Watch(fleet, telemetry, clock, lambda _: None, vitals, WatchMetrics(vitals.registry))
    thread = Thread(target=watch.run, args=(stopping,))
    thread.start()
    try:
        _until(lambda: vitals.is_ready)
        yield vitals
    finally:
        stopping.set()
        thread.join(DEADLINE_S)
    assert not thread.is_alive()


@contextmanager
def _remembering(telemetry: Telemetry) -> Iterator[Memory]:
    memory = Memory(telemetry)
    memory.start()
    try:
        yield memory
    finally:
        memory.stop()


def _until(seen: Callable[[], bool], act: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not seen():
        assert time.monotonic() < deadline
        act()
        time.sleep(0.1)


def _is_active(vitals: Vitals) -> bool:
    return samples_of(vitals.registry, ACTIVE) == {(): 1}


def _hear(vitals: Vitals, send: Callable[[ProbePulse], None]) -> None:
    """Again and again, as an agent does: a watch reads from where the topic ends as it begins."""
    well = pulse(15, broker(1), broker(2))
    _until(lambda: bool(samples_of(vitals.registry, HEARD)), lambda: send(well))


def test_it_tells_whom_it_names_whom_it_remembers_and_when_it_last_heard_of_a_vantage(
    telemetry: Telemetry, send: Callable[[ProbePulse], None]
) -> None:
    with _watching(telemetry) as vitals:
        _hear(vitals, send)
        assert samples_of(vitals.registry, HEARD) == {("orders", "zone-a"): at(15).timestamp()}
        send(pulse(20, hung(9, 1), broker(2)))
        _until(lambda: samples_of(vitals.registry, NAMED) == {("1", "orders"): 1, ("2", "orders"): 0})

    with _watching(telemetry) as vitals:
        _until(lambda: samples_of(vitals.registry, NAMED) == {("1", "orders"): 1})
        # Too old to be judged, but it was heard.
        old = pulse(0, broker(1), vantage="zone-b")
        _until(lambda: bool(samples_of(vitals.registry, HEARD)), lambda: send(old))
        assert samples_of(vitals.registry, HEARD) == {("orders", "zone-b"): at(0).timestamp()}
        assert samples_of(vitals.registry, NAMED) == {("1", "orders"): 1}
        send(pulse(30, broker(1), broker(2)))
        _until(lambda: samples_of(vitals.registry, NAMED) == {("1", "orders"): 0, ("2", "orders"): 0})
        assert vitals.is_alive


def test_of_two_one_tells_and_when_it_ends_the_other_goes_on(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver
) -> None:
    notifier = {"kind": "webhook", "url": receiver.url}
    with ExitStack() as second_one:
        with _watching(telemetry, notifier) as first:
            _until(lambda: _is_active(first))
            second = second_one.enter_context(_watching(telemetry, notifier))
            _hear(first, send)
            send(pulse(20, hung(9, 1), broker(2)))
            wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page")
            assert not _is_active(second)
            assert samples_of(second.registry, NAMED) == {}
        _until(lambda: samples_of(second.registry, NAMED) == {("1", "orders"): 1})
        assert samples_of(first.registry, NAMED) == {}
        _until(lambda: len(receiver.posts) > 1, lambda: send(pulse(30, broker(1), broker(2))))
    assert [(body["status"], body["broker"]) for body in receiver.bodies] == [("firing", 1), ("resolved", 1)]


def test_what_another_watch_told_and_left_late_is_told_to_be_over(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver
) -> None:
    """Telemetry hung: a watch paged, and lost its seat before what it had found was written."""
    with _watching(telemetry, {"kind": "webhook", "url": receiver.url}) as vitals:
        _hear(vitals, send)
        silent = Subject("orders", Chain.NO_DATA)
        with _remembering(telemetry) as memory:
            memory.found(finding(silent, Phase.HEALTHY, Phase.NO_DATA, at(10), {}))
        _until(lambda: bool(receiver.posts), lambda: send(pulse(20, broker(1), broker(2))))
        (post,) = receiver.bodies
        assert (post["status"], post["kind"], post["fingerprint"]) == (
            "resolved",
            "NO_DATA",
            silent.fingerprint,
        )


def test_what_a_receiver_did_not_take_the_next_watch_tells_it_with_the_same_id(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver
) -> None:
    notifier = {"kind": "webhook", "url": receiver.url}
    receiver.answers = [503] * 100
    with _watching(telemetry, notifier) as vitals:
        _hear(vitals, send)
        send(pulse(20, hung(9, 1), broker(2)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page")
    receiver.answers = []
    refused = len(receiver.posts)
    with _watching(telemetry, notifier):
        wait_until(lambda: len(receiver.posts) > refused, DEADLINE_S, "it to be told again")
    # And once it is taken nobody tells it again.
    with _watching(telemetry, notifier) as vitals:
        _until(lambda: _is_active(vitals))
    assert len(receiver.posts) == refused + 1
    assert len({body["id"] for body in receiver.bodies}) == 1


def test_what_is_planned_is_told_when_it_should_be_over(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver, tmp_path: Path
) -> None:
    put(tmp_path, CORRECTIONS, [planned(at(0), at(600), broker_id=1)])
    now = [NOW]
    notifier = {"kind": "webhook", "url": receiver.url}
    with _watching(telemetry, notifier, lake=tmp_path, clock=lambda: now[0]) as vitals:
        _hear(vitals, send)
        send(pulse(20, hung(9, 1), hung(9, 2), broker(3)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page for broker 2")
        assert samples_of(vitals.registry, NAMED)["1", "orders"] == 1
    with _watching(telemetry, notifier, lake=tmp_path, clock=lambda: now[0]) as vitals:
        _until(lambda: _is_active(vitals))
        assert [body["broker"] for body in receiver.bodies] == [2]
        now[0] = at(600)
        wait_until(lambda: len(receiver.posts) > 1, DEADLINE_S, "the page for broker 1")
    assert [(body["broker"], body["status"]) for body in receiver.bodies[:2]] == [
        (2, "firing"),
        (1, "firing"),
    ]


def test_what_waited_while_later_things_were_told_is_told_after_a_restart(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver, tmp_path: Path
) -> None:
    """The maintenance of broker 1 ends while nobody watches; broker 2 was told of meanwhile."""
    put(tmp_path, CORRECTIONS, [planned(at(0), at(600), broker_id=1)])
    notifier = {"kind": "webhook", "url": receiver.url}
    with _watching(telemetry, notifier, lake=tmp_path) as vitals:
        _hear(vitals, send)
        send(pulse(20, hung(9, 1), broker(2), broker(3)))
        _until(lambda: samples_of(vitals.registry, NAMED).get(("1", "orders")) == 1)
        send(pulse(25, hung(14, 1), hung(9, 2), broker(3)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page for broker 2")
    with _watching(telemetry, notifier, lake=tmp_path, clock=lambda: at(601)):
        wait_until(lambda: len(receiver.posts) > 1, DEADLINE_S, "the page for broker 1")
    assert [body["broker"] for body in receiver.bodies] == [2, 1]


def test_of_a_cluster_that_has_left_the_fleet_file_all_is_over(
    telemetry: Telemetry, receiver: Receiver
) -> None:
    ensure_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    gone = [Subject("carts", Chain.CLUSTER_DOWN), Subject("carts", Chain.LATENCY_BURN)]
    notifier = {"kind": "webhook", "url": receiver.url}
    with _watching(telemetry, notifier) as vitals, _remembering(telemetry) as memory:
        _until(lambda: _is_active(vitals))
        for subject in gone:
            memory.found(finding(subject, Phase.HEALTHY, Phase(subject.chain.value), at(10), {"brokers": 3}))
    with _watching(telemetry, notifier):
        wait_until(lambda: len(_ended(receiver)) == 2, DEADLINE_S, "their ends")
    assert _ended(receiver) == {"CLUSTER_DOWN", "LATENCY_BURN"}


def test_a_cluster_that_an_agents_old_fleet_file_has_is_missed_by_nobody(
    telemetry: Telemetry, receiver: Receiver, send: Callable[[ProbePulse], None]
) -> None:
    ensure_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    now = NOW
    with _watching(telemetry, {"kind": "webhook", "url": receiver.url}, clock=lambda: now) as vitals:
        _hear(vitals, send)
        send(pulse(15, broker(1), broker(2), cluster="carts"))
        _until(lambda: len(samples_of(vitals.registry, HEARD)) == 2)
        now += timedelta(seconds=40)
        wait_until(lambda: len(receiver.posts) == 1, DEADLINE_S, "orders to be missed")
    assert [(body["kind"], body["cluster"]) for body in receiver.bodies] == [("NO_DATA", "orders")]


def _ended(receiver: Receiver) -> set[str]:
    return {body["kind"] for body in receiver.bodies if body["status"] == "resolved"}


def test_an_agent_whose_clock_is_ahead_is_not_listened_to(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], caplog: pytest.LogCaptureFixture
) -> None:
    with _watching(telemetry) as vitals:
        _hear(vitals, send)
        send(pulse(40 + 11, hung(9, 1), broker(2), vantage="zone-b"))
        _until(lambda: samples_of(vitals.registry, IGNORED).get(("orders", "zone-b")) == 1)
        assert samples_of(vitals.registry, NAMED)["1", "orders"] == 0
    assert "the clock of vantage zone-b is 0:00:11 ahead of ours: one is wrong" in caplog.text


def _burn(telemetry: Telemetry, first: int, end: int, failed: int) -> None:
    """Minutes from so many after NOW on, in which one of three brokers fails so many of 100 probes."""
    agent = RecordProducer(telemetry.access, "agent")
    agent.start()
    start = NOW.replace(second=0)
    for minute in range(first, end):
        for broker_id in (1, 2, 3):
            successes = (5_000,) * (100 - (failed if broker_id == 2 else 0))
            record = replace(
                CLIENT,
                broker_id=broker_id,
                minute=start + minute * MINUTE,
                run_id=str(broker_id),
                sequence=100 + minute,
                e2e_us=successes,
            )
            agent.send(telemetry.topics.probe_minutes.name, "orders", record.encode())
    agent.stop()


def test_a_budget_that_goes_with_nobody_named_is_told_once_and_its_end_by_whoever_watches_then(
    telemetry: Telemetry, receiver: Receiver
) -> None:
    def told() -> list[tuple[str, str, str]]:
        """But for what there is of pulses, of which there are none."""
        bodies = [body for body in receiver.bodies if body["kind"] != "NO_DATA"]
        return [(body["kind"], body["status"], body["severity"]) for body in bodies]

    now = [NOW]
    notifier = {"kind": "webhook", "url": receiver.url}
    ensure_topics(telemetry)
    _burn(telemetry, -60, -5, failed=0)
    # Of an agent whose clock is ahead: by it the minutes that others have yet to tell of would be over.
    _burn(telemetry, 1, 2, failed=0)
    _burn(telemetry, -5, 0, failed=100)
    with _watching(telemetry, notifier, clock=lambda: now[0]):
        wait_until(lambda: len(told()) == 2, DEADLINE_S, "the pages")
    with _watching(telemetry, notifier, clock=lambda: now[0]) as vitals:
        _until(lambda: _is_active(vitals))
        now[0] = NOW + 40 * MINUTE
        _burn(telemetry, 0, 40, failed=0)
        wait_until(lambda: len(told()) > 2, DEADLINE_S, "the end")
    assert told() == [
        ("AVAILABILITY_BURN", "firing", "page"),
        ("AVAILABILITY_BURN_SLOW", "firing", "ticket"),
        ("AVAILABILITY_BURN", "resolved", "page"),
    ]


def test_what_is_kept_comes_back(telemetry: Telemetry) -> None:
    ensure_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    whose, event = HistoryOf("orders", 3, "zone-a"), named()
    spent = [BurnMinute(NOON + minute * MINUTE, minute == 61, 300, 299, 3, 3) for minute in range(62)]
    with _remembering(telemetry) as memory:
        memory.learnt(whose, (Took(1, 2),))
        memory.found(event)
        memory.learnt(whose, (Took(1, 2), Took(3, 4)))
        memory.told(Told(notifier="hook", event_id=event.event.event_id, at=event.event.at))
        for end in (59, 60, 61, 62):
            memory.spent("orders", spent[:end], spent[end - 1].minute)
    with _remembering(telemetry) as later:
        left = later.recall()
        # What was there is nothing new, nor is what is older than what is known.
        over = cleared(at=NOON + MINUTE)
        with _remembering(telemetry) as another:
            for one in (event, named(at=NOON - MINUTE), over):
                another.found(one)
        came: list[Finding] = []
        _until(lambda: over in came, lambda: came.extend(later.late()))
        assert came == [over]
    assert left.findings == (event,)
    assert left.histories == {whose: (Took(1, 2), Took(3, 4))}
    assert left.told["hook"].owed([event, cleared()]) == (cleared(),)
    assert left.minutes == {"orders": spent}
