"""The probe topic of real clusters: reassigned, short of a broker, unmanaged, and with an authorizer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from fleetgauge_core.fleet import Cluster, ClusterAccess
from fleetgauge_core.kafka import ClusterAdmin, TopicSpec, read_broker_registry, reassign_topic
from fleetgauge_core.metadata import PartitionMetadata
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.agent.reconciler import Reconciler
from fleetgauge_probes.agent.topic_plan import TOPIC, HomeBroker
from tests.kafka.acls import DENY, add_acl
from tests.kafka.agents import Agent, build_fleet, has_successful_probes, is_probed_through_other_leaders
from tests.kafka.broker_classes import add_class
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
#: The time in which the topic must be as planned again.
RECONCILED_WITHIN_S = 60

Assignment = dict[int, tuple[int, ...]]


class ProbeTopic:
    """A cluster's probe topic, and reconciliations of it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = ClusterAdmin(ClusterAccess(bootstrap))
        self.admin.start()

    @property
    def partitions(self) -> Mapping[int, PartitionMetadata] | None:
        metadata = self.admin.describe_topic(TOPIC)
        return None if metadata is None else metadata.partitions

    @property
    def replicas(self) -> Assignment:
        return {number: partition.replicas for number, partition in (self.partitions or {}).items()}

    @property
    def min_in_sync(self) -> str:
        return self.admin.read_topic_setting(TOPIC, "min.insync.replicas")

    def is_led_by(self, homes: Sequence[int]) -> bool:
        """Whether each home leads a partition as preferred leader, and all replicas are in sync."""
        partitions = (self.partitions or {}).values()
        leading = {
            partition.leader
            for partition in partitions
            if partition.replicas and partition.leader == partition.replicas[0]
        }
        return leading >= set(homes) and all(
            set(partition.replicas) == partition.in_sync for partition in partitions
        )

    def wait_until_led_by(self, homes: Sequence[int]) -> Assignment:
        """Return the replicas, read before the check: a broker may not know a new topic's partitions yet."""
        assignments: list[Assignment] = []

        def is_led() -> bool:
            assignments.append(self.replicas)
            return self.is_led_by(homes) and bool(assignments[-1])

        wait_until(is_led, RECONCILED_WITHIN_S, f"{homes} to lead their partitions")
        return assignments[-1]

    def reconcile(self, reconciler: Reconciler, homes: Sequence[int] = BROKERS, managed: bool = True) -> None:
        cluster = Cluster(id="reconciled", bootstrap=self.bootstrap, managed=managed)
        racks = {
            broker_id: broker.rack
            for broker_id, broker in read_broker_registry(ClusterAccess(self.bootstrap)).brokers.items()
        }
        home_brokers = [HomeBroker(broker, racks[broker]) for broker in homes]
        reconciler.reconcile(cluster, home_brokers, frozenset(homes), self.partitions)

    def reconcile_until(self, reconciler: Reconciler, homes: Sequence[int], min_in_sync: str) -> bool:
        self.reconcile(reconciler, homes)
        retired = set(BROKERS) - set(homes)
        replica_brokers = {broker for replicas in self.replicas.values() for broker in replicas}
        return not replica_brokers & retired and self.is_led_by(homes) and self.min_in_sync == min_in_sync

    def demote(self, broker: int) -> None:
        """Make the broker the last replica everywhere, then elect the preferred leaders."""
        replicas_by_partition = {
            number: tuple(sorted(replicas, key=lambda broker_id: broker_id == broker))
            for number, replicas in self.replicas.items()
        }
        assert replicas_by_partition
        assert reassign_topic(ClusterAccess(self.bootstrap), TOPIC, replicas_by_partition)
        wait_until(lambda: self.replicas == replicas_by_partition, RECONCILED_WITHIN_S, "the reassignment")
        self.admin.elect_preferred_leaders_of_topic(TOPIC, tuple(replicas_by_partition))


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the agent's log messages."""
    return [record.getMessage() for record in caplog.records if record.name == "fleetgauge.probe"]


def test_a_home_whose_partition_was_reassigned_leads_a_partition_again(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    topic = ProbeTopic(local_fleet.bootstrap("payments"))
    fleet, telemetry = build_fleet(local_fleet, ["payments"])
    with Agent(fleet, telemetry, tmp_path / "spool").running():
        (partition_of_broker_1,) = [
            number for number, replicas in topic.wait_until_led_by(BROKERS).items() if replicas[0] == 1
        ]
        assert reassign_topic(ClusterAccess(topic.bootstrap), TOPIC, {partition_of_broker_1: (2, 3, 1)})
        wait_until(
            lambda: topic.replicas.get(partition_of_broker_1) == (2, 3, 1),
            10,
            "the reassignment to be visible",
        )
        assert len(topic.wait_until_led_by(BROKERS)) == len(BROKERS)
        assert has_successful_probes(telemetry, "payments", BROKERS)


def test_a_demoted_broker_is_probed_through_other_leaders_until_its_demotion_ends(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    topic = ProbeTopic(local_fleet.bootstrap("payments"))
    unmarked, telemetry = build_fleet(local_fleet, ["payments"])
    marked = unmarked.model_copy(
        update={
            "clusters": tuple(cluster.model_copy(update={"demoted": (1,)}) for cluster in unmarked.clusters)
        }
    )
    agent = Agent(unmarked, telemetry, tmp_path / "spool")
    with agent.running():
        before = topic.wait_until_led_by(BROKERS)
        agent.fleet = marked
        assert has_successful_probes(telemetry, "payments", BROKERS, since=datetime.now(UTC))
        topic.demote(1)
        demoted = topic.replicas
        assert is_probed_through_other_leaders(telemetry, 1)
        assert topic.replicas == demoted
        assert 1 not in {partition.leader for partition in (topic.partitions or {}).values()}
        agent.fleet = unmarked
        assert len(topic.wait_until_led_by(BROKERS)) == len(before)


def test_a_retired_broker_loses_its_replicas_and_a_new_broker_gets_replicas(local_fleet: LocalFleet) -> None:
    topic = ProbeTopic(local_fleet.bootstrap("payments"))
    reconciler = Reconciler(topic.admin, uptime_ns)
    wait_until(lambda: topic.reconcile_until(reconciler, BROKERS, "2"), RECONCILED_WITHIN_S, "three homes")
    partitions = len(topic.replicas)
    wait_until(lambda: topic.reconcile_until(reconciler, (1, 2), "1"), RECONCILED_WITHIN_S, "two homes")
    assert all(sorted(replicas) == [1, 2] for replicas in topic.replicas.values())
    wait_until(
        lambda: topic.reconcile_until(reconciler, BROKERS, "2"), RECONCILED_WITHIN_S, "three homes again"
    )
    assert all(sorted(replicas) == [1, 2, 3] for replicas in topic.replicas.values())
    assert len(topic.replicas) == partitions
    assert reconciler.pending_actions == 0


def test_an_unmanaged_topic_is_not_changed_and_the_needed_changes_are_logged(
    local_fleet: LocalFleet, caplog: pytest.LogCaptureFixture
) -> None:
    topic = ProbeTopic(local_fleet.bootstrap("payments"))
    wait_until(
        lambda: topic.reconcile_until(Reconciler(topic.admin, uptime_ns), BROKERS, "2"),
        RECONCILED_WITHIN_S,
        "three homes",
    )
    before = topic.replicas
    observer = Reconciler(topic.admin, uptime_ns)
    topic.reconcile(observer, managed=False)
    assert (observer.pending_actions, list_warnings(caplog)) == (0, [])
    for _ in range(2):
        topic.reconcile(observer, (1, 2), managed=False)
    first, second = list_warnings(caplog)
    assert observer.pending_actions == 2
    assert first.startswith("reconciled: the probe topic is not managed; action required: reassign partition")
    assert (
        second == "reconciled: the probe topic is not managed; action required: set min.insync.replicas to 1"
    )
    assert topic.replicas == before


def test_settings_that_somebody_else_gave_the_topic_are_corrected(local_fleet: LocalFleet) -> None:
    topic = ProbeTopic(local_fleet.bootstrap("orders"))
    topic.reconcile(Reconciler(topic.admin, uptime_ns))
    wait_until(lambda: bool(topic.partitions), RECONCILED_WITHIN_S, "the topic")
    # A compacted topic rejects every probe, because probes have no key.
    topic.admin.set_topic_setting(TOPIC, "cleanup.policy", "compact")
    topic.admin.set_topic_setting(TOPIC, "retention.ms", "604800000")

    def are_corrected() -> bool:
        topic.reconcile(Reconciler(topic.admin, uptime_ns))
        settings = topic.admin.read_topic_settings(TOPIC)
        return (settings["cleanup.policy"], settings["retention.ms"]) == ("delete", "3600000")

    wait_until(are_corrected, RECONCILED_WITHIN_S, "the settings")


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@contextmanager
def run_cluster_with_authorizer(folder: Path, **more: str) -> Iterator[LocalFleet]:
    """Run a cluster of three brokers with an authorizer and without ACLs.

    It has one controller: several could not vote for each other before they have loaded the ACLs.
    """
    with pytest.MonkeyPatch.context() as patch:
        for key, value in (AUTHORIZER | more).items():
            patch.setitem(properties._BEHAVIOR, key, value)
        patch.setattr(ClusterSpec, "controller_ids", property(lambda cluster: cluster.broker_ids[:1]))
        with LocalFleet(folder / "fleet", (ClusterSpec("guarded"),)) as fleet:
            yield fleet


def deny_on_cluster(bootstrap: str, *operations: AclOperation) -> None:
    """Allow all cluster operations except these and ALTER, without which no more ACLs can be created."""
    add_acl(bootstrap, None, AclOperation.ALL)
    for operation in (*operations, AclOperation.ALTER):
        add_acl(bootstrap, None, operation, DENY)


def list_rejections(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return each rejected operation with the error, from the log."""
    rejected = (message.partition("rejected the request to ")[2] for message in list_warnings(caplog))
    return [f"{text.split()[0]} {text.split(': ')[1]}" for text in rejected if text]


def test_without_permission_to_reassign_partitions_are_added_until_each_broker_leads_one(
    local_fleet: LocalFleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with run_cluster_with_authorizer(tmp_path) as local:
        topic = ProbeTopic(local.bootstrap("guarded"))
        topic.admin.create_topic(TopicSpec(TOPIC, assignment=((2, 3, 1), (2, 1, 3))))
        fleet, telemetry = build_fleet(local, ["guarded"], telemetry_fleet=local_fleet)
        deny_on_cluster(topic.bootstrap, AclOperation.CREATE)
        with Agent(fleet, telemetry, tmp_path / "spool").running():
            assert has_successful_probes(telemetry, "guarded", BROKERS)
        assert sorted(replicas[0] for replicas in topic.replicas.values()) == [1, 2, 2, 3]
    assert list_rejections(caplog) == ["reassign CLUSTER_AUTHORIZATION_FAILED"]


def test_a_policy_against_assignments_leaves_the_placement_to_the_cluster(
    local_fleet: LocalFleet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    placement_policy = add_class("ClusterPlacementPolicy", tmp_path / "classes", monkeypatch)
    policy = {"create.topic.policy.class.name": placement_policy, "default.replication.factor": "2"}
    with run_cluster_with_authorizer(tmp_path, **policy) as local:
        topic = ProbeTopic(local.bootstrap("guarded"))
        fleet, telemetry = build_fleet(local, ["guarded"], telemetry_fleet=local_fleet)
        deny_on_cluster(topic.bootstrap)
        with Agent(fleet, telemetry, tmp_path / "spool").running():
            assert has_successful_probes(telemetry, "guarded", BROKERS)
        assert all(len(replicas) == 2 for replicas in topic.replicas.values())
        topic.admin.add_partitions(TOPIC, len(topic.replicas) + 1)
    assert list_rejections(caplog) == [
        "create POLICY_VIOLATION",
        "create POLICY_VIOLATION",
        "reassign CLUSTER_AUTHORIZATION_FAILED",
    ]
