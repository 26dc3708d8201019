"""`fleetgauge mitigate` on a cluster of its own: demoted under load, given back, refused by fail-safes."""

import json
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from fleetgauge_core.detection import Chain, Phase, Subject
from fleetgauge_core.detection.finding import finding
from fleetgauge_core.fleet import Access, load
from fleetgauge_core.kafka import (
    THROTTLED_RATE,
    THROTTLED_REPLICAS,
    Admin,
    KafkaUnavailableError,
    Layout,
    Place,
    RecordProducer,
    Seat,
    TopicSpec,
    ensure_state_topic,
    read_layout,
    reassign,
    reorder_all,
)
from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_core.runtime.shutdown import Stopping
from fleetgauge_core.tables import ACTIONS, CORRECTIONS
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_operations.mitigation.case import Action, Case, Outcome
from fleetgauge_operations.mitigation.cli import mitigate
from fleetgauge_operations.mitigation.desk import desk_of
from fleetgauge_operations.mitigation.limits import Limits
from fleetgauge_operations.mitigation.live import only_hand
from fleetgauge_operations.mitigation.record import Record
from fleetgauge_operations.mitigation.run import OnDuty
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.browser.lake import put
from tests.kafka.agents import Agent, fleet_of, probed, probed_by_way_of_others
from tests.receiver import Receiver
from tests.unit.operations.watch.tellings import planned
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
PARTITIONS = 12
DEADLINE_S = 60
APPLY = ("apply", "--cluster", "acted", "--broker", "2")
QUARANTINE = (*APPLY, "--action", "quarantine_restart")


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Three brokers in three zones. Other tests' topics of one replica would forbid every action."""
    with LocalFleet(tmp_path_factory.mktemp("acted"), (ClusterSpec("acted"),)) as fleet:
        yield fleet


@dataclass(frozen=True)
class Desk:
    """A fleet file with a lake of its own, and what somebody there types."""

    folder: Path
    access: Access
    agent: Agent
    human: Receiver
    watch: Seat
    """That of a watch which is at work, as its group tells."""
    topics: list[str] = field(default_factory=list)

    def says(self, *arguments: str, code: int = 0) -> Any:
        command, *rest = arguments
        done: Result = CliRunner().invoke(
            mitigate, [command, *rest, "--config", str(self.folder / "fleet.yaml"), "--json"]
        )
        assert done.exit_code == code, done.output
        return json.loads(done.stdout)

    def refused(self, broker: int = 2, *more: str) -> list[str]:
        """By which fail-safes, as a dry run says; who does it all the same is refused, and the human told."""
        apply = ("apply", "--cluster", "acted", "--broker", str(broker), *more)
        refusals = self.says(*apply, code=1)["refusals"]
        case = self.says(*apply, "--execute", code=1)
        words = [_without_ages(one["words"]) for one in refusals]
        assert (case["outcome"], case["told"]) == ("refused", ["127.0.0.1"])
        told = self.human.bodies[-1]
        assert (told["kind"], told["broker"], told["words"]) == ("MITIGATION_REFUSED", broker, case["words"])
        assert [_without_ages(one) for one in told["words"]] == words
        assert all(words)
        return [one["why"] for one in refusals]

    def find(self, broker: int, phase: Phase, minutes_ago: float = 5) -> None:
        """As a watch does."""
        before, after = (Phase.HEALTHY, phase) if phase.names else (Phase.DEGRADED, Phase.HEALTHY)
        at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
        chain = phase.chain if phase.names else Chain.DEGRADED
        event = finding(Subject("acted", chain, broker), before, after, at, {}).event
        producer = RecordProducer(self.agent.telemetry.access, "watch")
        producer.start()
        producer.send(self.agent.telemetry.topics.health_events.name, "acted", event.encode())
        producer.stop()

    def describe(self, **keys: Any) -> None:
        """In the fleet file, of its cluster."""
        config = self.folder / "fleet.yaml"
        document = yaml.safe_load(config.read_text())
        document["clusters"][0] |= keys
        config.write_text(yaml.safe_dump(document))

    @contextmanager
    def on_duty(self, limits: Limits) -> Iterator[None]:
        """`mitigate run`, while the block runs."""
        duty = OnDuty(
            desk_of(self.folder / "fleet.yaml", None), Vitals("mitigate", 900), lambda _: None, limits
        )
        stopping = Stopping()
        thread = threading.Thread(target=duty.run, args=(stopping,))
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(2 * DEADLINE_S)

    def await_told(self, kind: str) -> None:
        def told() -> bool:
            return kind in [one["kind"] for one in self.human.bodies]

        wait_until(told, DEADLINE_S, f"somebody to be told {kind}")

    def topic(self, *replicas: Sequence[int], **settings: str) -> str:
        name = f"t-{uuid.uuid4().hex[:8]}"
        self.admin.create(TopicSpec(name, settings, assignment=replicas))
        self.topics.append(name)
        wait_until(lambda: len(self.of(name)) == len(replicas), DEADLINE_S, "the topic")
        return name

    def of(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Its replicas, by partition."""
        known = self.layout().partitions
        return {place.partition: one.replicas for place, one in known.items() if place.topic == topic}

    def layout(self) -> Layout:
        return read_layout(self.access)

    @property
    def admin(self) -> Admin:
        admin = Admin(self.access)
        admin.start()
        return admin

    @property
    def record(self) -> Record:
        return Record(str(self.folder / "lake"))


@pytest.fixture
def desk(acted: LocalFleet, local_fleet: LocalFleet, tmp_path: Path) -> Iterator[Desk]:
    """Broker 2 leads a topic of three, and is degraded since five minutes."""
    fleet, telemetry = fleet_of(acted, ["acted"], carried_by=local_fleet)
    document = fleet.model_dump(mode="json", exclude_defaults=True)
    document["clusters"][0]["restart"] = _restart(acted)
    for topic in ("watch_state", "demotions"):
        document["telemetry"]["topics"][topic] = {"name": f"{topic}-{uuid.uuid4().hex[:8]}"}
    document["lake"] = str(tmp_path / "lake")
    human = Receiver()
    document["notifiers"] = [{"kind": "webhook", "url": human.url}]
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(document))
    described = load(tmp_path / "fleet.yaml")
    assert described.telemetry is not None
    for table in (ACTIONS, CORRECTIONS):
        put(tmp_path / "lake", table, [])
    agent = Agent(described, described.telemetry, tmp_path / "spool")
    ensure_state_topic(described.telemetry, described.telemetry.topics.watch_state)
    watch = Seat(telemetry.access, described.telemetry.topics.watch_state.name)
    desk = Desk(tmp_path, Access(acted.bootstrap("acted")), agent, human, watch)
    health = Admin(telemetry.access)
    health.start()
    health.create(TopicSpec(telemetry.topics.health_events.name, partitions=1, replication_factor=1))
    desk.find(2, Phase.DEGRADED)
    desk.topic((2, 3, 1), **{"min.insync.replicas": "2"})
    with human.listening(), _held(watch):
        yield desk
    admin = AdminClient({"bootstrap.servers": desk.access.bootstrap})
    for deleted in admin.delete_topics(desk.topics).values() if desk.topics else ():
        deleted.result(DEADLINE_S)


@contextmanager
def _held(seat: Seat) -> Iterator[None]:
    seat.start()
    try:
        assert seat.wait(DEADLINE_S)
        yield
    finally:
        seat.stop()


def _without_ages(words: str) -> str:
    """As seconds pass between two looks."""
    return re.sub(r"\d+ s\b", "some s", words)


def _restart(acted: LocalFleet) -> list[str]:
    """As a supervisor does it: SIGTERM, and start again."""
    script = (
        "import sys; from pathlib import Path; from fleetgauge_local.fleet import LocalFleet; "
        "fleet = LocalFleet(Path(sys.argv[1])); broker = int(sys.argv[2]); "
        "fleet.fault('kill', 'acted', broker); fleet.fault('heal', 'acted', broker)"
    )
    return [sys.executable, "-c", script, str(acted.status().directory), "{broker}"]


@dataclass
class Load:
    """Somebody who writes with acks=all, each once, and somebody who reads, all the time."""

    bootstrap: str
    topic: str
    size: int = 100
    acknowledged: int = 0
    received: int = 0
    errors: list[str] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator["Load"]:
        """When the block is left all that was acknowledged is waited for."""
        with _thread(self._consume), _thread(self._produce):
            wait_until(lambda: self.received > 0, DEADLINE_S, "the load")
            yield self

    def _produce(self, stopping: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 0})

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error:
                self.errors.append(error.str())
            else:
                self.acknowledged += 1

        number = 0
        while not stopping.wait(0.005):
            producer.produce(
                self.topic, bytes(self.size), partition=number % PARTITIONS, on_delivery=delivered
            )
            producer.poll(0)
            number += 1
        assert producer.flush(DEADLINE_S) == 0

    def _consume(self, stopping: threading.Event) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.topic, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([self.topic])
        until = float("inf")
        while time.monotonic() < until and not (stopping.is_set() and self.received >= self.acknowledged):
            message = consumer.poll(1)
            if stopping.is_set():
                until = min(until, time.monotonic() + DEADLINE_S)
            if message is None:
                continue
            if error := message.error():
                self.errors.append(error.str())
            else:
                self.received += 1
        consumer.close()


@contextmanager
def _thread(live: Callable[[threading.Event], None]) -> Iterator[None]:
    """Which is asked to end when the block is left, and waited for."""
    stopping = threading.Event()
    thread = threading.Thread(target=live, args=(stopping,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(2 * DEADLINE_S)


def test_demoted_under_load_left_alone_and_given_back_but_for_what_a_person_changed(desk: Desk) -> None:
    rotated = [BROKERS[n % 3 :] + BROKERS[: n % 3] for n in range(PARTITIONS)]
    topic = desk.topic(*rotated, **{"min.insync.replicas": "2"})
    with desk.agent.running(), Load(desk.access.bootstrap, topic).running() as load:
        assert probed(desk.agent.telemetry, "acted", (1, 3))
        before = desk.layout()
        dry = desk.says(*APPLY)
        assert (dry["executed"], dry["refusals"]) == (False, [])
        assert desk.of(topic) == dict(enumerate(rotated))

        case = desk.says(*APPLY, "--execute")
        assert (case["outcome"], case["reason"]) == ("done", "DEGRADED")
        after = desk.layout()
        assert not after.led_by(2)
        assert all(one.replicas[-1] == 2 for one in after.replicated_on(2).values())
        probes = desk.of(TOPIC)
        # Its agent looks every second.
        later = datetime.now(UTC) + timedelta(seconds=5)
        assert probed_by_way_of_others(desk.agent.telemetry, 2, since=later)
        assert desk.of(TOPIC) == probes
        assert not desk.layout().led_by(2)
        assert desk.refused() == ["nothing_to_take", "already", "too_soon"]

        assert reassign(desk.access, topic, {1: (1, 3, 2)})
        wait_until(lambda: desk.of(topic)[1] == (1, 3, 2), DEADLINE_S, "the person's change")
        assert [one["why"] for one in desk.says("undo", case["case"], "--execute", code=1)["refusals"]] == [
            "still_sick"
        ]
        desk.find(2, Phase.HEALTHY, minutes_ago=0)
        undone = desk.says("undo", case["case"], "--execute")
        assert (undone["outcome"], undone["words"]) == ("undone", [f"{topic}-1 was changed to 1, 3, 2 since"])
        assert desk.of(topic) == dict(enumerate(rotated)) | {1: (1, 3, 2)}
        restored = desk.layout()
        assert restored.led_by(2) == before.led_by(2) - {Place(topic, 1)}
    assert load.errors == []
    assert load.received == load.acknowledged > 0
    assert [one["outcome"] for one in desk.says("history")] == ["undone", "refused"]
    assert [one["kind"].removeprefix("MITIGATION_") for one in desk.human.bodies] == [
        "DONE",
        "REFUSED",
        "REFUSED",
        "UNDONE",
    ]


def test_what_it_led_comes_back_in_lots_but_for_what_a_person_changes_between_them(desk: Desk) -> None:
    desk.topic(*[(2, 3, 1)] * 5, **{"min.insync.replicas": "2"})
    before = desk.layout().led_by(2)
    case_id = desk.says(*APPLY, "--execute")["case"]
    desk.find(2, Phase.HEALTHY, minutes_ago=0)
    (case,) = desk.record.read(datetime.now(UTC)).cases
    *_, last = sorted(before)
    led: list[int] = []
    mine = desk_of(desk.folder / "fleet.yaml", None)
    with mine.hand(mine.cluster("acted"), Limits(led_again_a_minute=2)) as hand:

        def wait(seconds: float) -> None:
            if seconds < 60:
                hand.wait(seconds)
                return
            led.append(len(desk.layout().led_by(2)))
            assert reassign(desk.access, last.topic, {last.partition: (1, 3, 2)})

        undone = replace(hand, wait=wait).undo(case, None)
    assert (undone.case_id, undone.outcome) == (case_id, Outcome.UNDONE)
    assert undone.words == (f"{last.topic}-{last.partition} was changed to 1, 3, 2 since",)
    assert led == list(range(2, len(before), 2))
    assert desk.layout().led_by(2) == before - {last}


def test_restarted_out_of_sync_while_it_copies_and_back_after_release(desk: Desk) -> None:
    rotated = [BROKERS[n % 3 :] + BROKERS[: n % 3] for n in range(PARTITIONS)]
    topic = desk.topic(*rotated, **{"min.insync.replicas": "2"})

    def behind() -> list[int]:
        known = desk.layout().partitions
        return sorted(
            place.partition for place, one in known.items() if place.topic == topic and 2 not in one.in_sync
        )

    with Load(desk.access.bootstrap, topic, size=20_000).running() as load:
        case = desk.says(*QUARANTINE, "--execute")
        assert case["outcome"] == "done"
        assert behind()
        # It goes on copying all the while, and is not let in.
        had = load.acknowledged
        wait_until(lambda: load.acknowledged > had + 200, DEADLINE_S, "more to come in")
        assert behind()
        desk.find(2, Phase.HEALTHY, minutes_ago=0)
        undone = desk.says("undo", case["case"], "--execute")
        assert undone["outcome"] == "undone"
        assert behind() == []
        assert desk.admin.setting(topic, THROTTLED_REPLICAS) == ""
        assert desk.admin.setting_of_broker(2, THROTTLED_RATE) is None
    assert load.errors == []
    assert load.received == load.acknowledged > 0


def test_a_rate_that_somebody_has_set_is_neither_changed_nor_taken_away(desk: Desk) -> None:
    desk.admin.set_of_broker(2, THROTTLED_RATE, "5000000")
    try:
        case = desk.says(*QUARANTINE, "--execute", code=1)
        assert (case["outcome"], "5000000 B/s" in case["words"][0]) == ("failed", True)
        assert [(one["kind"], one["severity"]) for one in desk.human.bodies] == [
            ("MITIGATION_FAILED", "page")
        ]
        assert desk.says("undo", case["case"], "--reason", "not begun", "--execute")["outcome"] == "undone"
        assert desk.admin.setting_of_broker(2, THROTTLED_RATE) == "5000000"
    finally:
        desk.admin.set_of_broker(2, THROTTLED_RATE, None)


def test_without_a_command_nobody_is_restarted(desk: Desk) -> None:
    desk.describe(restart=[])
    assert desk.refused(2, "--action", "quarantine_restart") == ["no_restart"]


def test_a_well_cluster_refuses_nothing(desk: Desk) -> None:
    planned = desk.says("plan")
    assert [
        (one["broker"], one["action"], [refusal["why"] for refusal in one["refusals"]]) for one in planned
    ] == [
        (2, "demote", []),
        (2, "quarantine_restart", []),
        (2, "evacuate", ["too_young", "proposed_only"]),
    ]


def test_who_alone_has_a_partition_is_not_demoted(desk: Desk) -> None:
    single = desk.topic((2,))
    assert desk.refused() == ["only_replica", "min_in_sync"]
    (case,) = desk.says("history")
    assert case["outcome"] == "refused"
    assert single in case["words"][0]


def test_who_is_needed_for_min_insync_replicas_is_not_demoted(desk: Desk) -> None:
    desk.topic((2, 3), **{"min.insync.replicas": "2"})
    assert desk.refused() == ["min_in_sync"]


def test_with_a_second_sick_broker_none_is_demoted(desk: Desk) -> None:
    desk.find(3, Phase.DEGRADED)
    assert desk.refused() == ["second_sick"]


def test_while_no_watch_is_at_work_what_it_found_last_is_no_reason(desk: Desk) -> None:
    desk.watch.stop()
    assert desk.refused() == ["no_watch"]


def test_whom_people_have_planned_to_be_out_is_left_to_them(desk: Desk) -> None:
    now = datetime.now(UTC)
    row = planned(now - timedelta(hours=1), now + timedelta(hours=1), cluster_id="acted", broker_id=2)
    put(desk.folder / "lake", CORRECTIONS, [row])
    assert desk.refused() == ["planned"]


def test_an_order_that_would_move_data_is_none(desk: Desk) -> None:
    """A person has given it other replicas since it was looked at."""
    topic = desk.topic((2, 1))
    with pytest.raises(KafkaUnavailableError, match=f"{topic}-0 has been given other replicas"):
        reorder_all(desk.access, {Place(topic, 0): (3, 2)}, {Place(topic, 0): [(3, 2), (2, 3)]})
    assert desk.of(topic) == {0: (2, 1)}
    with pytest.raises(KafkaUnavailableError, match="another order since"):
        reorder_all(desk.access, {Place(topic, 0): (1, 2)}, {Place(topic, 0): [(1, 2)]})
    assert desk.of(topic) == {0: (2, 1)}
    assert reorder_all(desk.access, {Place(topic, 0): (1, 2)}, {Place(topic, 0): [(2, 1)]})
    wait_until(lambda: desk.of(topic) == {0: (1, 2)}, DEADLINE_S, "the order")


def test_what_was_broken_off_is_given_up_and_somebody_is_told(desk: Desk) -> None:
    _kept(desk, 2, "z2", Outcome.BEGUN)
    assert desk.refused() == ["already", "circuit_open"]
    with desk.on_duty(Limits()):
        desk.await_told("MITIGATION_FAILED")
    assert [one["outcome"] for one in desk.says("history")] == ["failed", "refused"]


def test_while_a_reassignment_runs_nobody_is_demoted(desk: Desk) -> None:
    topic = desk.topic((1, 3), **{"min.insync.replicas": "1"})
    _fill(desk.access.bootstrap, topic)
    with _throttled(desk, topic):
        assert reassign(desk.access, topic, {0: (1, 2)})
        assert desk.refused() == ["moving"]
    wait_until(lambda: not desk.layout().moving, DEADLINE_S, "the reassignment")


def test_with_a_broker_of_another_zone_in_treatment_nobody_is(desk: Desk) -> None:
    _kept(desk, 3, "z3", Outcome.DONE)
    assert desk.refused() == ["other_zone"]


def test_while_the_circuit_is_open_nobody_is_demoted(desk: Desk) -> None:
    """Open because what was done did not come of it: the same broker's case, so that no other zone's is."""
    _kept(desk, 2, "z2", Outcome.FAILED)
    assert desk.refused() == ["already", "circuit_open"]


def test_what_is_off_is_done_by_nobody(desk: Desk) -> None:
    desk.describe(mitigation={"demote": False})
    assert desk.refused() == ["off"]
    assert "demote" not in [one["action"] for one in desk.says("plan")]


def test_moving_data_is_proposed_only(desk: Desk) -> None:
    assert desk.refused(2, "--action", "evacuate") == ["too_young", "proposed_only"]


def test_who_hangs_is_restarted_and_back(desk: Desk, acted: LocalFleet) -> None:
    desk.find(2, Phase.BROKER_DOWN)
    acted.fault("hang", "acted", 2)
    wait_until(lambda: desk.layout().brokers[2].fenced, DEADLINE_S, "the cluster to notice")
    case = desk.says(*APPLY, "--action", "restart", "--execute")
    assert (case["outcome"], case["reason"]) == ("done", "DEGRADED, BROKER_DOWN")
    assert not desk.layout().brokers[2].fenced
    # It is over, and is in nobody's way; another would be too soon.
    refused = desk.says(*APPLY, "--action", "restart", code=1)["refusals"]
    assert [one["why"] for one in refused] == ["too_soon"]
    wait_until(lambda: _in_sync_everywhere(desk, 2), DEADLINE_S, "broker 2 to catch up")


def test_on_duty_it_demotes_by_itself_and_gives_back_once_the_broker_is_well(desk: Desk) -> None:
    desk.describe(mitigation={"demote": "act", "quarantine_restart": "off"})
    before = desk.layout().led_by(2)
    with desk.on_duty(Limits(well_for=timedelta(0))):
        desk.await_told("MITIGATION_DONE")
        assert not desk.layout().led_by(2)
        desk.find(2, Phase.HEALTHY, minutes_ago=0)
        desk.await_told("MITIGATION_UNDONE")
    assert desk.layout().led_by(2) >= before
    (case,) = desk.says("history")
    assert (case["outcome"], case["author"]) == ("undone", "fleetgauge mitigate run")


def test_on_duty_where_it_may_only_advise_it_calls_a_person_and_says_when_it_is_over(desk: Desk) -> None:
    before = desk.layout()
    with desk.on_duty(Limits()):
        desk.await_told("MITIGATION_ADVISED")
        desk.find(2, Phase.HEALTHY, minutes_ago=0)
        wait_until(lambda: len(desk.human.bodies) == 2, DEADLINE_S, "the end of it")
    assert desk.layout() == before
    advised, over = desk.human.bodies
    assert (advised["status"], advised["severity"], over["status"]) == ("firing", "ticket", "resolved")
    assert advised["fingerprint"] == over["fingerprint"]
    assert "mitigate apply --cluster acted --broker 2 --action demote" in advised["words"][0]
    (case,) = desk.says("history")
    assert (case["outcome"], case["ended"] is not None) == ("advised", True)


def test_on_duty_with_nothing_to_put_it_on_record_it_does_nothing_and_says_so_once(desk: Desk) -> None:
    before, table = desk.layout(), desk.folder / "lake" / ACTIONS.path
    aside = table.with_name("aside")
    desk.describe(mitigation={"demote": "act"})
    table.rename(aside)
    with desk.on_duty(Limits()):
        desk.await_told("MITIGATION_STANDS_STILL")
        assert desk.layout() == before
        aside.rename(table)
        wait_until(lambda: len(desk.human.bodies) == 3, DEADLINE_S, "it to go on")
    still, done, again = desk.human.bodies
    assert [one["status"] for one in (still, again)] == ["firing", "resolved"]
    assert still["fingerprint"] == again["fingerprint"]
    assert "ops/actions" in still["words"][0]
    assert (done["kind"], desk.layout().led_by(2)) == ("MITIGATION_DONE", set())


def test_a_watch_that_was_cut_off_makes_nobody_sick_again(desk: Desk) -> None:
    """It writes what it had found before, once another has found it to be over."""
    desk.find(2, Phase.HEALTHY, minutes_ago=1)
    desk.find(2, Phase.DEGRADED, minutes_ago=4)
    assert desk.refused() == ["no_finding"]


def test_on_duty_it_tells_again_until_somebody_takes_it(desk: Desk) -> None:
    """Longer than it tries at once: a ticket that nobody took would never come else."""
    desk.human.answers = [503] * 5
    with desk.on_duty(Limits()):
        wait_until(lambda: len(desk.human.bodies) >= 6, DEADLINE_S, "it to be told again")
        wait_until(lambda: desk.says("history")[0]["told"] == ["127.0.0.1"], DEADLINE_S, "it to be known")
    assert {one["id"] for one in desk.human.bodies} == {desk.human.bodies[0]["id"]}
    assert len(desk.human.bodies) == 6


def test_two_hands_do_not_act_at_once(desk: Desk) -> None:
    with only_hand(desk.agent.telemetry):
        done = CliRunner().invoke(
            mitigate,
            [*APPLY, "--execute", "--config", str(desk.folder / "fleet.yaml")],
        )
    assert done.exit_code == 2
    assert "somebody else holds the seat" in done.stderr
    assert desk.says("history") == []


def _in_sync_everywhere(desk: Desk, broker: int) -> bool:
    return all(broker in one.in_sync for one in desk.layout().replicated_on(broker).values())


def _kept(desk: Desk, broker: int, zone: str, outcome: Outcome) -> None:
    began = datetime.now(UTC) - timedelta(hours=2)
    desk.record.add(Case("c1", Action.DEMOTE, "acted", broker, zone, "ann", "DEGRADED", began, outcome))


def _fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(200):
        producer.produce(topic, bytes(10_000))
    assert producer.flush(DEADLINE_S) == 0


@contextmanager
def _throttled(desk: Desk, topic: str) -> Iterator[None]:
    """Nothing is copied to a new replica of it."""

    def alter(kind: Any, name: str, key: str, value: str | None) -> None:
        operation = AlterConfigOpType.SET if value else AlterConfigOpType.DELETE
        entry = ConfigEntry(key, value or "", incremental_operation=operation)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": desk.access.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    def limit(rate: str | None, replicas: str | None) -> None:
        alter(ResourceType.TOPIC, topic, "follower.replication.throttled.replicas", replicas)
        alter(ResourceType.BROKER, "2", "follower.replication.throttled.rate", rate)

    limit("1", "*")
    try:
        yield
    finally:
        limit(None, None)
