"""The probe topic of real clusters: moved by somebody, short of a broker, not ours to change, guarded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from fleetgauge_core.fleet import Access, Cluster
from fleetgauge_core.kafka import (
    Admin,
    TopicSpec,
    reassign,
    registered_brokers,
)
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.agent.reconciler import Reconciler
from fleetgauge_probes.agent.topic_plan import TOPIC, Home, Partition
from tests.kafka.acls import DENY, rule
from tests.kafka.agents import Agent, fleet_of, probed, probed_by_way_of_others
from tests.kafka.broker_classes import add_class
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
#: Within this everything is to be right again.
RIGHT_AGAIN_S = 60

Assignment = dict[int, tuple[int, ...]]


class Topic:
    """The probe topic of a cluster, and what a reconciler makes of it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = Admin(Access(bootstrap))
        self.admin.start()

    @property
    def partitions(self) -> dict[int, Partition] | None:
        view = self.admin.topic(TOPIC)
        if view is None:
            return None
        return {n: Partition(one.leader, one.replicas, one.in_sync) for n, one in view.partitions.items()}

    @property
    def replicas(self) -> Assignment:
        return {number: one.replicas for number, one in (self.partitions or {}).items()}

    @property
    def min_in_sync(self) -> str:
        return self.admin.setting(TOPIC, "min.insync.replicas")

    def is_led_by(self, homes: Sequence[int]) -> bool:
        """Each of them leads a partition of which it is the home, and no replica is out of sync."""
        partitions = (self.partitions or {}).values()
        leading = {one.leader for one in partitions if one.replicas and one.leader == one.replicas[0]}
        return leading >= set(homes) and all(set(one.replicas) == one.in_sync for one in partitions)

    def led_by(self, homes: Sequence[int]) -> Assignment:
        """Its replicas, once that is so: a broker that has not heard of a new topic yet knows of none."""
        seen: list[Assignment] = []

        def is_so() -> bool:
            seen.append(self.replicas)
            return self.is_led_by(homes) and bool(seen[-1])

        wait_until(is_so, RIGHT_AGAIN_S, f"{homes} to lead their own")
        return seen[-1]

    def mend(self, reconciler: Reconciler, homes: Sequence[int] = BROKERS, managed: bool = True) -> None:
        cluster = Cluster(id="tried", bootstrap=self.bootstrap, managed=managed)
        racks = {b: one.rack for b, one in registered_brokers(Access(self.bootstrap)).brokers.items()}
        wanted = [Home(broker, racks[broker]) for broker in homes]
        reconciler.mend(cluster, wanted, frozenset(homes), self.partitions, uptime_ns())

    def mended(self, reconciler: Reconciler, homes: Sequence[int], min_in_sync: str) -> bool:
        self.mend(reconciler, homes)
        gone = set(BROKERS) - set(homes)
        held = {broker for replicas in self.replicas.values() for broker in replicas}
        return not held & gone and self.is_led_by(homes) and self.min_in_sync == min_in_sync

    def demote(self, broker: int) -> None:
        """As a person would: last in every list, and the first replicas elected."""
        last = {
            number: tuple(sorted(replicas, key=lambda one: one == broker))
            for number, replicas in self.replicas.items()
        }
        assert last
        assert reassign(Access(self.bootstrap), TOPIC, last)
        wait_until(lambda: self.replicas == last, RIGHT_AGAIN_S, "the lists to be changed")
        self.admin.elect_preferred(TOPIC, tuple(last))


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The agent's warnings."""
    return [one.getMessage() for one in caplog.records if one.name == "fleetgauge.probe"]


def test_a_home_whose_partition_somebody_moved_leads_one_again(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    topic = Topic(local_fleet.bootstrap("payments"))
    fleet, telemetry = fleet_of(local_fleet, ["payments"])
    with Agent(fleet, telemetry, tmp_path / "spool").running():
        (of_broker_1,) = [n for n, replicas in topic.led_by(BROKERS).items() if replicas[0] == 1]
        assert reassign(Access(topic.bootstrap), TOPIC, {of_broker_1: (2, 3, 1)})
        wait_until(lambda: topic.replicas.get(of_broker_1) == (2, 3, 1), 10, "the move to be seen")
        assert len(topic.led_by(BROKERS)) == len(BROKERS)
        assert probed(telemetry, "payments", BROKERS)


def test_a_demoted_broker_is_probed_by_way_of_others_until_it_may_lead_again(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    topic = Topic(local_fleet.bootstrap("payments"))
    plain, telemetry = fleet_of(local_fleet, ["payments"])
    marked = plain.model_copy(
        update={"clusters": tuple(one.model_copy(update={"demoted": (1,)}) for one in plain.clusters)}
    )
    agent = Agent(plain, telemetry, tmp_path / "spool")
    with agent.running():
        before = topic.led_by(BROKERS)
        agent.fleet = marked
        assert probed(telemetry, "payments", BROKERS, since=datetime.now(UTC))
        topic.demote(1)
        demoted = topic.replicas
        assert probed_by_way_of_others(telemetry, 1)
        assert topic.replicas == demoted
        assert 1 not in {one.leader for one in (topic.partitions or {}).values()}
        agent.fleet = plain
        assert len(topic.led_by(BROKERS)) == len(before)


def test_a_retired_broker_leaves_the_topic_and_one_that_joins_gets_its_share(local_fleet: LocalFleet) -> None:
    topic = Topic(local_fleet.bootstrap("payments"))
    reconciler = Reconciler(topic.admin)
    wait_until(lambda: topic.mended(reconciler, BROKERS, "2"), RIGHT_AGAIN_S, "all three")
    partitions = len(topic.replicas)
    wait_until(lambda: topic.mended(reconciler, (1, 2), "1"), RIGHT_AGAIN_S, "two to be left")
    assert all(sorted(replicas) == [1, 2] for replicas in topic.replicas.values())
    wait_until(lambda: topic.mended(reconciler, BROKERS, "2"), RIGHT_AGAIN_S, "all three again")
    assert all(sorted(replicas) == [1, 2, 3] for replicas in topic.replicas.values())
    assert len(topic.replicas) == partitions
    assert reconciler.pending == 0


def test_a_topic_that_is_not_ours_to_change_is_left_alone_and_what_is_to_be_done_is_said(
    local_fleet: LocalFleet, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topic(local_fleet.bootstrap("payments"))
    wait_until(lambda: topic.mended(Reconciler(topic.admin), BROKERS, "2"), RIGHT_AGAIN_S, "all three")
    before = topic.replicas
    observer = Reconciler(topic.admin)
    topic.mend(observer, managed=False)
    assert (observer.pending, said(caplog)) == (0, [])
    for _ in range(2):
        topic.mend(observer, (1, 2), managed=False)
    first, second = said(caplog)
    assert observer.pending == 2
    assert first.startswith("tried: its probe topic is not managed; to be done: move partition")
    assert second == "tried: its probe topic is not managed; to be done: set min.insync.replicas to 1"
    assert topic.replicas == before


GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@contextmanager
def guarded(folder: Path, **more: str) -> Iterator[LocalFleet]:
    """A cluster of three with an authorizer that nobody has given a rule yet.

    With one controller: several could not even vote for each other before they know that anybody may.
    """
    with pytest.MonkeyPatch.context() as patch:
        for key, value in (GUARDED | more).items():
            patch.setitem(properties._BEHAVIOUR, key, value)
        patch.setattr(ClusterSpec, "controller_ids", property(lambda one: one.broker_ids[:1]))
        with LocalFleet(folder / "fleet", (ClusterSpec("guarded"),)) as fleet:
            yield fleet


def deny_on_cluster(bootstrap: str, *operations: AclOperation) -> None:
    """Everything but these, and ALTER. For good: who may not alter the cluster makes no more rules."""
    rule(bootstrap, None, AclOperation.ALL)
    for operation in (*operations, AclOperation.ALTER):
        rule(bootstrap, None, operation, DENY)


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the cluster was said to refuse, and why."""
    refused = (one.partition("refuses to ")[2] for one in said(caplog))
    return [f"{words.split()[0]} {words.split(': ')[1]}" for words in refused if words]


def test_where_replicas_may_not_be_moved_partitions_are_added_until_each_broker_leads_one(
    local_fleet: LocalFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with guarded(tmp_path) as local:
        topic = Topic(local.bootstrap("guarded"))
        topic.admin.create(TopicSpec(TOPIC, assignment=((2, 3, 1), (2, 1, 3))))
        fleet, telemetry = fleet_of(local, ["guarded"], carried_by=local_fleet)
        deny_on_cluster(topic.bootstrap, AclOperation.CREATE)
        with Agent(fleet, telemetry, tmp_path / "spool").running():
            assert probed(telemetry, "guarded", BROKERS)
        assert sorted(replicas[0] for replicas in topic.replicas.values()) == [1, 2, 2, 3]
    assert refusals(caplog) == ["move CLUSTER_AUTHORIZATION_FAILED"]


def test_where_replicas_may_not_be_placed_nor_counted_the_cluster_does_and_each_broker_leads_one(
    local_fleet: LocalFleet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own_placement = add_class("OwnPlacement", tmp_path / "classes", monkeypatch)
    policy = {"create.topic.policy.class.name": own_placement, "default.replication.factor": "2"}
    with guarded(tmp_path, **policy) as local:
        topic = Topic(local.bootstrap("guarded"))
        fleet, telemetry = fleet_of(local, ["guarded"], carried_by=local_fleet)
        deny_on_cluster(topic.bootstrap)
        with Agent(fleet, telemetry, tmp_path / "spool").running():
            assert probed(telemetry, "guarded", BROKERS)
        assert all(len(replicas) == 2 for replicas in topic.replicas.values())
        topic.admin.widen(TOPIC, len(topic.replicas) + 1)
    assert refusals(caplog) == [
        "make POLICY_VIOLATION",
        "make POLICY_VIOLATION",
        "move CLUSTER_AUTHORIZATION_FAILED",
    ]
