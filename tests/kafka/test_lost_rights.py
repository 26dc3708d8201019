"""Processes beside agent and watch that lose each printed permission, and are given it back."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AclOperation

from fleetgauge_core.fleet import Cluster, Telemetry, load_fleet
from fleetgauge_core.kafka import (
    ClusterAdmin,
    KafkaUnavailableError,
    LeadershipStatus,
    RecordProducer,
    TopicSpec,
    ensure_state_topic,
    ensure_telemetry_topics,
    read_cluster_metadata,
)
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.actions.leadership import LeadershipTakenError, hold_cluster_leadership
from fleetgauge_operations.actions.observer import read_findings
from fleetgauge_operations.mitigation.cluster_control import KafkaClusterControl
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder
from tests.chaos._streaming import Command, rows
from tests.kafka.acls import AclRight, remove_all_rights
from tests.kafka.strict import (
    CLIENT,
    find_broker_listener,
    grant,
    grant_only,
    print_rights,
    revoke,
)
from tests.probe_minutes import CLIENT as CLIENT_MINUTE
from tests.waiting import wait_until

pytestmark = pytest.mark.thorough

DEADLINE_S = 120
CLUSTERS = ("strict", "telemetry")
#: How messages name a missing permission.
DENIED = (
    "AUTHORIZATION",
    "uthorization failed",
    "ermission",
    "not authorized",
    "client lacks",
    "may not join",
)


@pytest.fixture
def super_telemetry(strict: LocalFleet) -> Telemetry:
    telemetry = load_fleet(strict.fleet_file).telemetry
    assert telemetry is not None
    access = telemetry.model_copy(update={"bootstrap": find_broker_listener(strict, "telemetry")})
    ensure_telemetry_topics(access)
    return access


@pytest.fixture
def orders(strict: LocalFleet) -> TopicPartition:
    cluster = load_fleet(strict.fleet_file).cluster("strict")
    admin = ClusterAdmin(replace(cluster.access, bootstrap=find_broker_listener(strict, "strict")))
    admin.start()
    admin.create_topic(TopicSpec("orders", assignment=((1, 2, 3),)))
    return TopicPartition("orders", 0)


def has_denial(text: str) -> bool:
    return any(words in text for words in DENIED)


def act(cluster: Cluster, telemetry: Telemetry, partition: TopicPartition) -> None:
    """Observe, lead, and demote and throttle a broker, as an action does; then take all of it back."""
    control = KafkaClusterControl(cluster, telemetry, lambda: datetime.now(UTC))
    assert list(read_findings(telemetry)) is not None
    described = read_cluster_metadata(cluster.access).partitions.get(partition)
    if described is None:
        # Without DESCRIBE a topic is not visible, and nothing of it can be changed.
        return
    replicas = described.replicas
    order, throttle = ReplicaOrder(replicas, (*replicas[1:], replicas[0])), {partition.topic: "0:1"}
    with hold_cluster_leadership(telemetry, cluster.id) as leadership:
        assert leadership.confirm() is LeadershipStatus.HELD
        for demoted in (True, False):
            control.set_demotion_mark(1, demoted=demoted)
        control.reorder_replicas({partition: order.after}, {partition: order})
        control.elect_preferred_leaders([partition])
        control.throttle_replication(1, throttle)
        control.remove_throttle(1, throttle, registered=True)


def test_a_mitigation_names_each_permission_that_it_lacks(
    strict: LocalFleet, super_telemetry: Telemetry, orders: TopicPartition
) -> None:
    fleet = load_fleet(strict.fleet_file)
    cluster, telemetry = fleet.cluster("strict"), fleet.telemetry
    assert telemetry is not None
    ensure_state_topic(super_telemetry, telemetry.topics.watch_state)
    rights = grant_only(strict, "mitigate", CLUSTERS)
    act(cluster, telemetry, orders)
    not_named = []
    for lost_in, right in rights:
        revoke(strict, lost_in, right)
        failure = try_to_act(cluster, telemetry, orders)
        if failure is None:
            not_named.append(right)
        assert failure is None or has_denial(failure), (right, failure)
        grant(strict, lost_in, right)
        wait_until(
            lambda: try_to_act(cluster, telemetry, orders) is None, DEADLINE_S, f"an action after {right}"
        )
    # All topics exist, and the groups of watches are described by another step.
    assert {right.operation for right in not_named} <= {AclOperation.CREATE, AclOperation.DESCRIBE}


def try_to_act(cluster: Cluster, telemetry: Telemetry, partition: TopicPartition) -> str | None:
    """Return the message of the error by which the action fails; None if it succeeds."""
    try:
        act(cluster, telemetry, partition)
    except (KafkaUnavailableError, LeadershipTakenError) as error:
        return str(error)
    return None


def test_a_recovery_survives_the_loss_of_each_permission_and_says_which(
    strict: LocalFleet, orders: TopicPartition, tmp_path: Path
) -> None:
    """Both regions are the same cluster here, as only what is asked of a cluster matters."""
    config = write_recovery_file(strict, tmp_path)
    for cluster in CLUSTERS:
        remove_all_rights(find_broker_listener(strict, cluster), CLIENT)
    rights = list(dict.fromkeys(right for _, right in print_rights(config, "--for", "recover")))
    for right in rights:
        grant(strict, "strict", right)
    command = ("recover", "run", "--execute", "--look-every", "1", "--sync-every", "1")
    with Command(tmp_path / "recover.log", *command, "--config", str(config)) as recover:
        let_run(recover, 10)
        assert not has_denial(recover.output), recover.output
        not_named = []
        for right in rights:
            logged = len(recover.output)
            revoke(strict, "strict", right)
            if not names_a_permission(recover, logged, 30):
                not_named.append(right)
            grant(strict, "strict", right)
            assert recover.is_alive, recover.output
            wait_until(lambda: stays_silent(recover), DEADLINE_S, f"no more lines about {right}")
        assert recover.end() == 0, recover.output
        assert "Traceback" not in recover.output
    # Of what a group without offsets and an existing topic need, nothing is missed.
    named = [right for right in rights if right not in not_named]
    assert AclRight(AclOperation.READ, "*") in named, not_named


def write_recovery_file(strict: LocalFleet, folder: Path) -> Path:
    document = yaml.safe_load(strict.fleet_file.read_text(encoding="utf-8"))
    (entry,) = (cluster for cluster in document["clusters"] if cluster["id"] == "strict")
    document["clusters"] = [entry, entry | {"id": "other"}]
    document["lake"] = str(folder / "lake")
    document["recovery"] = {
        "mirrors": [
            {"source": "strict", "destination": "other", "topics": "orders|tracers", "names": "kept"}
        ],
        "groups": [{"active": "strict", "passive": "other", "groups": "billing"}],
        "tracers": {"topic": "tracers", "every_s": 1},
    }
    (folder / "fleet.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder / "fleet.yaml"


def let_run(command: Command, seconds: float) -> None:
    """Let a process run for a time, in which what matters is that it does not end."""
    until_s = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > until_s or not command.is_alive, 2 * seconds, "the time")
    assert command.is_alive, command.output


def names_a_permission(command: Command, logged: int, within_s: float) -> bool:
    """Return whether a process says that a permission is missing, after ``logged`` characters of output."""
    try:
        wait_until(lambda: has_denial(command.output[logged:]), within_s, "a line about a permission")
    except TimeoutError:
        return False
    return True


def stays_silent(command: Command) -> bool:
    """Return whether a process says nothing about permissions for ten seconds."""
    logged = len(command.output)
    let_run(command, 10)
    return not has_denial(command.output[logged:])


def test_a_stream_survives_the_loss_of_each_permission_and_loses_no_record(
    strict: LocalFleet, super_telemetry: Telemetry, tmp_path: Path
) -> None:
    rights = grant_only(strict, "stream", CLUSTERS)
    agent = RecordProducer(super_telemetry.access, "agent")
    agent.start()
    lake, sent = tmp_path / "lake", 0

    def send() -> None:
        nonlocal sent
        sent += 1
        minute = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
        record = replace(
            CLIENT_MINUTE, cluster_id="strict", sequence=sent, minute=minute, emitted_at=datetime.now(UTC)
        )
        agent.send(super_telemetry.topics.probe_minutes.name, record.cluster_id, record.encode())

    def is_stored() -> bool:
        return len(rows(lake, PROBE_MINUTES, ["sequence"])) == sent

    options = ("--config", str(strict.fleet_file), "--lake", str(lake))
    with Command(tmp_path / "stream.log", "stream", *options) as stream:
        send()
        wait_until(is_stored, 3 * DEADLINE_S, "the first record")
        not_named = []
        for cluster, right in rights:
            logged = len(stream.output)
            revoke(strict, cluster, right)
            send()
            if not names_a_permission(stream, logged, 60):
                not_named.append(right)
            grant(strict, cluster, right)
            wait_until(
                lambda: is_stored() or not stream.is_alive, 3 * DEADLINE_S, f"the record after {right}"
            )
            assert stream.is_alive, stream.output
            assert is_stored()
        assert stream.end() == 0, stream.output
        assert "Traceback" not in stream.output
    agent.stop(DEADLINE_S)
    assert {right.operation for right in not_named} <= {AclOperation.CREATE, AclOperation.DESCRIBE}
