"""Watches on real topics: their metrics and notifications, takeover, and recovery of stored state."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
    LatencyHistoryKey,
    LatencyQuantiles,
)
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.fleet import Notifier, Telemetry
from fleetgauge_core.kafka import RecordProducer, ensure_state_topic, ensure_telemetry_topics
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_core.slo.burn import BurnMinute
from fleetgauge_core.tables import CORRECTIONS
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.notify.fleet_faults import name_notifier
from fleetgauge_operations.watch.controller import WatchController
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.state_store import DeliveryRecord, StateStore
from fleetgauge_operations.watch.watched_fleet import WatchedFleet
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
from tests.unit.operations.watch.sample_findings import cleared, maintenance_row, opened
from tests.waiting import wait_until

DEADLINE_S = 60
NOW = at(40)
ACTIVE = "fleetgauge_watch_active"
NAMED = "fleetgauge_broker_named"
FAULTY = "fleetgauge_part_faulty"
WAITING = "fleetgauge_notifications_waiting"
IGNORED = "fleetgauge_watch_pulses_ignored_total"
PULSE_TIMESTAMP = "fleetgauge_watch_pulse_timestamp_seconds"


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
    with Receiver().listening() as receiver:
        yield receiver


@pytest.fixture
def send(telemetry: Telemetry) -> Iterator[Callable[[ProbePulse], None]]:
    agent = RecordProducer(telemetry.access, "agent")
    agent.start()
    yield lambda sent: agent.send(telemetry.topics.probe_pulse.name, sent.cluster_id, sent.encode())
    agent.stop()


@contextmanager
def _running_watch(
    telemetry: Telemetry,
    *notifiers: dict[str, Any],
    lake: Path = Path("no-lake"),
    clock: Callable[[], datetime] = lambda: NOW,
) -> Iterator[ProcessHealth]:
    """Run a watch, and wait until it is ready: as the leader, or as a candidate."""
    with TemporaryDirectory() as folder:
        config = Path(folder) / "fleet.yaml"
        _write_fleet(config, telemetry, *notifiers, lake=lake)
        with _watching(config, telemetry, clock) as health:
            yield health


@contextmanager
def _watching(
    config: Path, telemetry: Telemetry, clock: Callable[[], datetime] = lambda: NOW
) -> Iterator[ProcessHealth]:
    """Run a watch of a fleet file, and wait until it is ready."""
    health, shutdown = ProcessHealth("watch", 60), ShutdownFlag()
    watched, metrics = WatchedFleet(config, health.parts, time.monotonic), WatchMetrics(health.registry)
    watched.load()
    watch = WatchController(watched, telemetry, clock, lambda _: None, health, metrics)
    thread = Thread(target=watch.run, args=(shutdown,))
    thread.start()
    try:
        _repeat_until(lambda: health.is_ready)
        yield health
    finally:
        shutdown.set()
        thread.join(DEADLINE_S)
    assert not thread.is_alive()


def _write_fleet(
    config: Path,
    telemetry: Telemetry,
    *notifiers: dict[str, Any],
    clusters: Sequence[str] = ("orders",),
    lake: Path = Path("no-lake"),
) -> None:
    """Replace a fleet file by renaming another one, as editors do."""
    document = {
        "clusters": [{"id": cluster, "bootstrap": "nobody:1"} for cluster in clusters],
        "telemetry": telemetry.model_dump(mode="json", exclude_none=True),
        "notifiers": notifiers,
        "lake": str(lake),
    }
    config.with_suffix(".new").write_text(json.dumps(document))
    config.with_suffix(".new").replace(config)


@contextmanager
def _state_store(telemetry: Telemetry) -> Iterator[StateStore]:
    store = StateStore(telemetry)
    store.start()
    try:
        yield store
    finally:
        store.stop()


def _repeat_until(condition: Callable[[], bool], act: Callable[[], None] = lambda: None) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        act()
        time.sleep(0.1)


def _is_active(health: ProcessHealth) -> bool:
    return samples_of(health.registry, ACTIVE) == {(): 1}


def _send_until_received(health: ProcessHealth, send: Callable[[ProbePulse], None]) -> None:
    """Send a pulse repeatedly, because a watch begins to read at the end of the topic at its start."""
    healthy_pulse = pulse(15, broker(1), broker(2))
    _repeat_until(lambda: bool(samples_of(health.registry, PULSE_TIMESTAMP)), lambda: send(healthy_pulse))


def test_the_metrics_show_open_alerts_also_after_a_restart_and_the_last_pulse_of_a_vantage(
    telemetry: Telemetry, send: Callable[[ProbePulse], None]
) -> None:
    with _running_watch(telemetry) as health:
        _send_until_received(health, send)
        assert samples_of(health.registry, PULSE_TIMESTAMP) == {("orders", "zone-a"): at(15).timestamp()}
        send(pulse(20, hung(9, 1), broker(2)))
        _repeat_until(lambda: samples_of(health.registry, NAMED) == {("1", "orders"): 1, ("2", "orders"): 0})

    with _running_watch(telemetry) as health:
        _repeat_until(lambda: samples_of(health.registry, NAMED) == {("1", "orders"): 1})
        # This pulse is too old to be evaluated, but its time is exported.
        old_pulse = pulse(0, broker(1), vantage="zone-b")
        _repeat_until(lambda: len(samples_of(health.registry, PULSE_TIMESTAMP)) == 2, lambda: send(old_pulse))
        assert samples_of(health.registry, PULSE_TIMESTAMP)["orders", "zone-b"] == at(0).timestamp()
        assert samples_of(health.registry, NAMED) == {("1", "orders"): 1}
        send(pulse(30, broker(1), broker(2)))
        _repeat_until(lambda: samples_of(health.registry, NAMED) == {("1", "orders"): 0, ("2", "orders"): 0})
        assert health.is_alive


def test_a_notifier_without_its_secret_delays_no_other_and_is_sent_what_it_missed(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver, tmp_path: Path
) -> None:
    secret, webhook = tmp_path / "slack-url", {"kind": "webhook", "url": receiver.url}
    with (
        Receiver().listening() as slack,
        _running_watch(telemetry, webhook, {"kind": "slack", "url_from": {"file": str(secret)}}) as health,
    ):
        _send_until_received(health, send)
        send(pulse(20, hung(9, 1), broker(2)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page to the webhook")
        ((name, part, reason),) = samples_of(health.registry, FAULTY)
        assert (name[:5], part, reason) == ("slack", "notifier", "credentials")
        secret.write_text(slack.url)
        wait_until(lambda: bool(slack.posts), DEADLINE_S, "the page to slack")
        _repeat_until(lambda: not samples_of(health.registry, FAULTY))


def test_only_one_of_two_watches_notifies_and_the_other_takes_over(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver
) -> None:
    notifier = {"kind": "webhook", "url": receiver.url}
    with ExitStack() as second_watch:
        with _running_watch(telemetry, notifier) as first:
            _repeat_until(lambda: _is_active(first))
            second = second_watch.enter_context(_running_watch(telemetry, notifier))
            _send_until_received(first, send)
            send(pulse(20, hung(9, 1), broker(2)))
            wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page")
            assert not _is_active(second)
            assert samples_of(second.registry, NAMED) == {}
        _repeat_until(lambda: samples_of(second.registry, NAMED) == {("1", "orders"): 1})
        assert samples_of(first.registry, NAMED) == {}
        _repeat_until(lambda: len(receiver.posts) > 1, lambda: send(pulse(30, broker(1), broker(2))))
    assert [(body["status"], body["broker"]) for body in receiver.bodies] == [("firing", 1), ("resolved", 1)]


def test_a_secret_that_cannot_be_read_keeps_no_other_receiver_from_its_page(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver
) -> None:
    notifiers: list[dict[str, Any]] = [
        {"kind": "slack", "url_from": {"env": "NOT_SET_ANYWHERE"}},
        {"kind": "webhook", "url": receiver.url, "name": "oncall"},
    ]
    with _running_watch(telemetry, *notifiers) as health:
        _send_until_received(health, send)
        send(pulse(20, hung(9, 1), broker(2)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page")
        slack = name_notifier(Notifier.model_validate(notifiers[0]))
        _repeat_until(lambda: samples_of(health.registry, WAITING) == {(slack,): 1, ("oncall",): 0})


def test_an_alert_that_another_watch_published_late_is_resolved(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver
) -> None:
    """Telemetry hung: a watch paged, and lost its leadership before its finding was written."""
    with _running_watch(telemetry, {"kind": "webhook", "url": receiver.url}) as health:
        _send_until_received(health, send)
        subject = FindingSubject("orders", HealthCondition.NO_DATA)
        with _state_store(telemetry) as store:
            store.save_finding(build_finding(subject, HealthState.HEALTHY, HealthState.NO_DATA, at(10), {}))
        _repeat_until(lambda: bool(receiver.posts), lambda: send(pulse(20, broker(1), broker(2))))
        (post,) = receiver.bodies
        assert (post["status"], post["kind"], post["fingerprint"]) == (
            "resolved",
            "NO_DATA",
            subject.fingerprint,
        )


def test_the_next_watch_retries_a_failed_notification_with_the_same_id(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver
) -> None:
    notifier = {"kind": "webhook", "url": receiver.url}
    receiver.answers = [503] * 100
    with _running_watch(telemetry, notifier) as health:
        _send_until_received(health, send)
        send(pulse(20, hung(9, 1), broker(2)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page")
    receiver.answers = []
    failed_attempts = len(receiver.posts)
    with _running_watch(telemetry, notifier):
        wait_until(lambda: len(receiver.posts) > failed_attempts, DEADLINE_S, "the retry")
    # An accepted notification is not sent again.
    with _running_watch(telemetry, notifier) as health:
        _repeat_until(lambda: _is_active(health))
    assert len(receiver.posts) == failed_attempts + 1
    assert len({body["id"] for body in receiver.bodies}) == 1


def test_an_alert_suppressed_by_planned_maintenance_is_sent_when_the_maintenance_ends(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver, tmp_path: Path
) -> None:
    put(tmp_path, CORRECTIONS, [maintenance_row(at(0), at(600), broker_id=1)])
    clock = [NOW]
    notifier = {"kind": "webhook", "url": receiver.url}
    with _running_watch(telemetry, notifier, lake=tmp_path, clock=lambda: clock[0]) as health:
        _send_until_received(health, send)
        send(pulse(20, hung(9, 1), hung(9, 2), broker(3)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page for broker 2")
        assert samples_of(health.registry, NAMED)["1", "orders"] == 1
    with _running_watch(telemetry, notifier, lake=tmp_path, clock=lambda: clock[0]) as health:
        _repeat_until(lambda: _is_active(health))
        assert [body["broker"] for body in receiver.bodies] == [2]
        clock[0] = at(600)
        wait_until(lambda: len(receiver.posts) > 1, DEADLINE_S, "the page for broker 1")
    assert [(body["broker"], body["status"]) for body in receiver.bodies[:2]] == [
        (2, "firing"),
        (1, "firing"),
    ]


def test_a_suppressed_alert_is_sent_after_a_restart_even_if_a_later_one_was_sent_before(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver, tmp_path: Path
) -> None:
    """The maintenance of broker 1 ends while no watch runs; broker 2 was notified before."""
    put(tmp_path, CORRECTIONS, [maintenance_row(at(0), at(600), broker_id=1)])
    notifier = {"kind": "webhook", "url": receiver.url}
    with _running_watch(telemetry, notifier, lake=tmp_path) as health:
        _send_until_received(health, send)
        send(pulse(20, hung(9, 1), broker(2), broker(3)))
        _repeat_until(lambda: samples_of(health.registry, NAMED).get(("1", "orders")) == 1)
        send(pulse(25, hung(14, 1), hung(9, 2), broker(3)))
        wait_until(lambda: bool(receiver.posts), DEADLINE_S, "the page for broker 2")
    with _running_watch(telemetry, notifier, lake=tmp_path, clock=lambda: at(601)):
        wait_until(lambda: len(receiver.posts) > 1, DEADLINE_S, "the page for broker 1")
    assert [body["broker"] for body in receiver.bodies] == [2, 1]


def test_alerts_of_a_cluster_removed_from_the_fleet_file_are_resolved(
    telemetry: Telemetry, receiver: Receiver
) -> None:
    ensure_telemetry_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    subjects = [
        FindingSubject("carts", HealthCondition.CLUSTER_DOWN),
        FindingSubject("carts", HealthCondition.LATENCY_BURN),
    ]
    notifier = {"kind": "webhook", "url": receiver.url}
    with _running_watch(telemetry, notifier) as health, _state_store(telemetry) as store:
        _repeat_until(lambda: _is_active(health))
        for subject in subjects:
            store.save_finding(
                build_finding(
                    subject, HealthState.HEALTHY, HealthState(subject.condition.value), at(10), {"brokers": 3}
                )
            )
    with _running_watch(telemetry, notifier):
        wait_until(lambda: len(_resolved_kinds(receiver)) == 2, DEADLINE_S, "the resolutions")
    assert _resolved_kinds(receiver) == {"CLUSTER_DOWN", "LATENCY_BURN"}


def test_missing_pulses_of_a_cluster_that_is_not_in_the_fleet_file_are_not_reported(
    telemetry: Telemetry, receiver: Receiver, send: Callable[[ProbePulse], None]
) -> None:
    ensure_telemetry_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    now = NOW
    with _running_watch(telemetry, {"kind": "webhook", "url": receiver.url}, clock=lambda: now) as health:
        _send_until_received(health, send)
        send(pulse(15, broker(1), broker(2), cluster="carts"))
        _repeat_until(lambda: ("carts", "zone-a") in samples_of(health.registry, IGNORED))
        now += timedelta(seconds=40)
        wait_until(lambda: len(receiver.posts) == 1, DEADLINE_S, "NO_DATA of orders")
    assert [(body["kind"], body["cluster"]) for body in receiver.bodies] == [("NO_DATA", "orders")]


def test_clusters_and_notifiers_come_and_go_with_the_fleet_file(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], receiver: Receiver, tmp_path: Path
) -> None:
    config, webhook = tmp_path / "fleet.yaml", {"kind": "webhook", "url": receiver.url}
    _write_fleet(config, telemetry, webhook, clusters=("orders", "carts"))
    with Receiver().listening() as another, _watching(config, telemetry) as health:
        _send_until_received(health, send)
        for cluster in ("orders", "carts"):
            send(pulse(15, broker(1), broker(2), cluster=cluster))
            send(pulse(20, hung(9, 1), broker(2), cluster=cluster))
        wait_until(lambda: len(receiver.posts) == 2, DEADLINE_S, "the pages")
        # The finding of orders stays open, that of carts is closed, and search is watched.
        _write_fleet(config, telemetry, webhook, clusters=("orders", "search"))
        wait_until(lambda: len(receiver.posts) == 3, DEADLINE_S, "the end of the finding of carts")
        _repeat_until(lambda: samples_of(health.registry, NAMED) == {("1", "orders"): 1, ("2", "orders"): 0})
        assert {cluster for cluster, _ in samples_of(health.registry, PULSE_TIMESTAMP)} == {"orders"}
        send(pulse(25, hung(14, 1), broker(2), cluster="carts"))
        for seconds in (15, 20):
            send(pulse(seconds, hung(seconds - 11, 1), broker(2), cluster="search"))
        send(pulse(25, hung(14, 1), broker(2), cluster="search"))
        wait_until(lambda: len(receiver.posts) == 4, DEADLINE_S, "the page for search")
        # Another notifier gets the open findings, and the earlier one nothing more.
        _write_fleet(
            config, telemetry, {"kind": "webhook", "url": another.url}, clusters=("orders", "search")
        )
        wait_until(lambda: len(another.posts) == 2, DEADLINE_S, "the open findings")
        send(pulse(30, broker(1), broker(2)))
        wait_until(lambda: len(another.posts) == 3, DEADLINE_S, "the recovery of orders")
    assert [(body["cluster"], body["status"]) for body in receiver.bodies] == [
        ("orders", "firing"),
        ("carts", "firing"),
        ("carts", "resolved"),
        ("search", "firing"),
    ]
    assert receiver.bodies[2]["summary"].startswith("carts: no longer watched")
    assert [(body["cluster"], body["status"]) for body in another.bodies] == [
        ("orders", "firing"),
        ("search", "firing"),
        ("orders", "resolved"),
    ]


def test_a_vantage_that_is_silent_stays_silent_at_the_next_watch(
    telemetry: Telemetry, send: Callable[[ProbePulse], None]
) -> None:
    clock = [NOW]
    with ExitStack() as second_watch:
        with _running_watch(telemetry, clock=lambda: clock[0]) as first:
            _send_until_received(first, send)
            send(pulse(20, broker(1), broker(2), vantage="zone-b"))
            _repeat_until(lambda: len(samples_of(first.registry, PULSE_TIMESTAMP)) == 2)
            clock[0] = at(65)
            send(pulse(60, broker(1), broker(2)))
            _repeat_until(
                lambda: samples_of(first.registry, PULSE_TIMESTAMP)["orders", "zone-a"] == at(60).timestamp()
            )
            second = second_watch.enter_context(_running_watch(telemetry, clock=lambda: clock[0]))
        _repeat_until(lambda: _is_active(second))
        times = samples_of(second.registry, PULSE_TIMESTAMP)
        # Whom the first watch heard counts as heard until the second one began.
        assert times == {("orders", "zone-a"): at(65).timestamp(), ("orders", "zone-b"): at(20).timestamp()}
        send(pulse(64, broker(1), vantage="zone-b"))
        _repeat_until(
            lambda: samples_of(second.registry, PULSE_TIMESTAMP)["orders", "zone-b"] == at(64).timestamp()
        )


def _resolved_kinds(receiver: Receiver) -> set[str]:
    return {body["kind"] for body in receiver.bodies if body["status"] == "resolved"}


def test_pulses_of_an_agent_whose_clock_is_ahead_are_ignored(
    telemetry: Telemetry, send: Callable[[ProbePulse], None], caplog: pytest.LogCaptureFixture
) -> None:
    with _running_watch(telemetry) as health:
        _send_until_received(health, send)
        send(pulse(40 + 11, hung(9, 1), broker(2), vantage="zone-b"))
        _repeat_until(lambda: samples_of(health.registry, IGNORED).get(("orders", "zone-b")) == 1)
        assert samples_of(health.registry, NAMED)["1", "orders"] == 0
    assert "vantage zone-b: its clock is ahead of this machine's by 0:00:11" in caplog.text


def _send_minutes(telemetry: Telemetry, first: int, end: int, failed: int) -> None:
    """Send probe minutes, counted from NOW, in which broker 2 of three fails ``failed`` of 100 probes."""
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


def test_a_burn_alert_is_sent_once_and_resolved_by_the_next_watch(
    telemetry: Telemetry, receiver: Receiver
) -> None:
    def burn_notifications() -> list[tuple[str, str, str]]:
        """Return the notifications without NO_DATA, because these tests send no pulses."""
        bodies = [body for body in receiver.bodies if body["kind"] != "NO_DATA"]
        return [(body["kind"], body["status"], body["severity"]) for body in bodies]

    clock = [NOW]
    notifier = {"kind": "webhook", "url": receiver.url}
    ensure_telemetry_topics(telemetry)
    _send_minutes(telemetry, -60, -5, failed=0)
    # A minute of an agent whose clock is ahead must not close the minutes that others have yet to send.
    _send_minutes(telemetry, 1, 2, failed=0)
    _send_minutes(telemetry, -5, 0, failed=100)
    with _running_watch(telemetry, notifier, clock=lambda: clock[0]):
        wait_until(lambda: len(burn_notifications()) == 2, DEADLINE_S, "the pages")
    with _running_watch(telemetry, notifier, clock=lambda: clock[0]) as health:
        _repeat_until(lambda: _is_active(health))
        clock[0] = NOW + 40 * MINUTE
        _send_minutes(telemetry, 0, 40, failed=0)
        wait_until(lambda: len(burn_notifications()) > 2, DEADLINE_S, "the resolution")
    assert burn_notifications() == [
        ("AVAILABILITY_BURN", "firing", "page"),
        ("AVAILABILITY_BURN_SLOW", "firing", "ticket"),
        ("AVAILABILITY_BURN", "resolved", "page"),
    ]


def test_stored_state_is_recovered(telemetry: Telemetry) -> None:
    ensure_telemetry_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    key, finding = LatencyHistoryKey("orders", 3, "zone-a"), opened()
    burn_minutes = [BurnMinute(NOON + minute * MINUTE, minute == 61, 300, 299, 3, 3) for minute in range(62)]
    with _state_store(telemetry) as store:
        store.save_latency_history(key, (LatencyQuantiles(1, 2),))
        store.save_finding(finding)
        store.save_latency_history(key, (LatencyQuantiles(1, 2), LatencyQuantiles(3, 4)))
        store.save_delivery(
            DeliveryRecord(notifier="hook", event_id=finding.event.event_id, at=finding.event.at)
        )
        for end in (59, 60, 61, 62):
            store.save_burn_minutes("orders", burn_minutes[:end], burn_minutes[end - 1].minute)
    with _state_store(telemetry) as later:
        recovered = later.restore()
        # A known finding is not new, nor is a finding older than a known one.
        resolution = cleared(at=NOON + MINUTE)
        with _state_store(telemetry) as another:
            for late_finding in (finding, opened(at=NOON - MINUTE), resolution):
                another.save_finding(late_finding)
        late_findings: list[Finding] = []
        _repeat_until(
            lambda: resolution in late_findings, lambda: late_findings.extend(later.read_late_findings())
        )
        assert late_findings == [resolution]
    assert recovered.findings == (finding,)
    assert recovered.histories == {key: (LatencyQuantiles(1, 2), LatencyQuantiles(3, 4))}
    assert recovered.deliveries["hook"].select_undelivered([finding, cleared()]) == (cleared(),)
    assert recovered.burn_minutes == {"orders": burn_minutes}
