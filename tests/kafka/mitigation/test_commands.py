"""`fleetgauge mitigate` with real brokers: actions under load, their undo, and each fail-safe."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from fleetgauge_core.detection import HealthState
from fleetgauge_core.kafka import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    KafkaUnavailableError,
    reassign_topic,
    reorder_replicas,
)
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_core.tables import CORRECTIONS, ActionOutcome
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.actions.leadership import hold_cluster_leadership
from fleetgauge_operations.mitigation.cli import mitigate
from fleetgauge_operations.mitigation.context import open_mitigation
from fleetgauge_operations.mitigation.plan.limits import MitigationLimits
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.browser.lake import put
from tests.kafka.agents import has_successful_probes, is_probed_through_other_leaders
from tests.kafka.mitigation.load import PARTITIONS, Load
from tests.kafka.mitigation.testbed import DEADLINE_S, MitigationTestbed, store_action
from tests.unit.operations.watch.sample_findings import maintenance_row
from tests.waiting import wait_until

BROKERS = (1, 2, 3)
APPLY = ("apply", "--cluster", "mitigated", "--broker", "2")
QUARANTINE = (*APPLY, "--action", "quarantine_restart")


def test_a_demotion_under_load_is_undone_except_for_partitions_changed_by_an_operator(
    testbed: MitigationTestbed,
) -> None:
    rotated = [BROKERS[shift % 3 :] + BROKERS[: shift % 3] for shift in range(PARTITIONS)]
    topic = testbed.create_topic(*rotated, **{"min.insync.replicas": "2"})
    with testbed.agent.running(), Load(testbed.access.bootstrap, topic).running() as load:
        assert has_successful_probes(testbed.agent.telemetry, "mitigated", (1, 3))
        before = testbed.metadata()
        dry_run = testbed.run_command(*APPLY)
        assert (dry_run["executed"], dry_run["refusals"]) == (False, [])
        assert testbed.read_replicas(topic) == dict(enumerate(rotated))

        case = testbed.run_command(*APPLY, "--execute")
        assert (case["outcome"], case["reason"]) == ("done", "DEGRADED")
        after = testbed.metadata()
        assert not after.led_by(2)
        assert all(metadata.replicas[-1] == 2 for metadata in after.replicated_on(2).values())
        probes = testbed.read_replicas(TOPIC)
        # The agent reads the topic every second, so by then it would have reassigned its partition.
        later = datetime.now(UTC) + timedelta(seconds=5)
        assert is_probed_through_other_leaders(testbed.agent.telemetry, 2, since=later)
        assert testbed.read_replicas(TOPIC) == probes
        assert not testbed.metadata().led_by(2)
        assert testbed.read_refusals() == ["nothing_to_take", "already", "too_soon"]

        assert reassign_topic(testbed.access, topic, {1: (1, 3, 2)})
        wait_until(lambda: testbed.read_replicas(topic)[1] == (1, 3, 2), DEADLINE_S, "the operator's change")
        assert [
            refusal["why"]
            for refusal in testbed.run_command("undo", case["case"], "--execute", exit_code=1)["refusals"]
        ] == ["still_sick"]
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
        undone = testbed.run_command("undo", case["case"], "--execute")
        assert (undone["outcome"], undone["words"]) == (
            "undone",
            [f"{topic}-1 not restored, because its replicas were changed to 1, 3, 2"],
        )
        assert testbed.read_replicas(topic) == dict(enumerate(rotated)) | {1: (1, 3, 2)}
        restored = testbed.metadata()
        assert restored.led_by(2) == before.led_by(2) - {TopicPartition(topic, 1)}
    assert load.errors == []
    assert load.received == load.acknowledged > 0
    assert [action["outcome"] for action in testbed.run_command("history")] == ["undone", "refused"]
    assert [body["kind"].removeprefix("MITIGATION_") for body in testbed.on_call.bodies] == [
        "DONE",
        "REFUSED",
        "REFUSED",
        "UNDONE",
    ]


def test_leadership_returns_in_batches_except_for_partitions_changed_in_between(
    testbed: MitigationTestbed,
) -> None:
    testbed.create_topic(*[(2, 3, 1)] * 5, **{"min.insync.replicas": "2"})
    before = testbed.metadata().led_by(2)
    case_id = testbed.run_command(*APPLY, "--execute")["case"]
    testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
    (case,) = testbed.audit_log.read_entries().cases
    *_, last = sorted(before)
    led: list[int] = []
    context = open_mitigation(testbed.folder / "fleet.yaml", None)
    with context.open_executor(
        context.find_cluster("mitigated"), MitigationLimits(max_led_per_minute=2)
    ) as executor:

        def wait(seconds: float) -> None:
            if seconds < 60:
                executor.wait(seconds)
                return
            led.append(len(testbed.metadata().led_by(2)))
            assert reassign_topic(testbed.access, last.topic, {last.partition: (1, 3, 2)})

        undone = replace(executor, wait=wait).undo(case, None)
    assert (undone.case_id, undone.outcome) == (case_id, ActionOutcome.UNDONE)
    assert undone.explanations == (
        f"{last.topic}-{last.partition} not restored, because its replicas were changed to 1, 3, 2",
    )
    assert led == list(range(2, len(before), 2))
    assert testbed.metadata().led_by(2) == before - {last}


def test_a_quarantined_broker_replicates_out_of_sync_until_the_undo(testbed: MitigationTestbed) -> None:
    rotated = [BROKERS[shift % 3 :] + BROKERS[: shift % 3] for shift in range(PARTITIONS)]
    topic = testbed.create_topic(*rotated, **{"min.insync.replicas": "2"})

    def out_of_sync() -> list[int]:
        return sorted(
            partition.partition
            for partition, metadata in testbed.metadata().partitions.items()
            if partition.topic == topic and 2 not in metadata.in_sync
        )

    with Load(testbed.access.bootstrap, topic, size=20_000).running() as load:
        case = testbed.run_command(*QUARANTINE, "--execute")
        assert case["outcome"] == "done"
        wait_until(out_of_sync, DEADLINE_S, "a follower out of sync")
        # The broker keeps replicating, and the throttle keeps it out of the ISR.
        acknowledged_before = load.acknowledged
        wait_until(
            lambda: load.acknowledged > acknowledged_before + 200, DEADLINE_S, "more acknowledged records"
        )
        assert out_of_sync()
        testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
        undone = testbed.run_command("undo", case["case"], "--execute")
        assert undone["outcome"] == "undone"
        assert out_of_sync() == []
        assert testbed.admin.read_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS) == ""
        assert testbed.admin.read_broker_setting(2, FOLLOWER_THROTTLED_RATE) is None
    assert load.errors == []
    assert load.received == load.acknowledged > 0


def test_a_replication_throttle_of_an_operator_is_neither_changed_nor_removed(
    testbed: MitigationTestbed,
) -> None:
    testbed.admin.set_broker_setting(2, FOLLOWER_THROTTLED_RATE, "5000000")
    try:
        case = testbed.run_command(*QUARANTINE, "--execute", exit_code=1)
        assert (case["outcome"], "5000000 B/s" in case["words"][0]) == ("failed", True)
        assert [(body["kind"], body["severity"]) for body in testbed.on_call.bodies] == [
            ("MITIGATION_FAILED", "page")
        ]
        assert (
            testbed.run_command("undo", case["case"], "--reason", "not begun", "--execute")["outcome"]
            == "undone"
        )
        assert testbed.admin.read_broker_setting(2, FOLLOWER_THROTTLED_RATE) == "5000000"
    finally:
        testbed.admin.set_broker_setting(2, FOLLOWER_THROTTLED_RATE, None)


def test_without_a_restart_command_no_broker_is_restarted(testbed: MitigationTestbed) -> None:
    testbed.update_fleet_file(restart=[])
    assert testbed.read_refusals(2, "--action", "quarantine_restart") == ["no_restart"]


def test_a_healthy_cluster_refuses_no_action_that_may_be_executed(testbed: MitigationTestbed) -> None:
    proposals = testbed.run_command("plan")
    assert [
        (
            proposal["broker"],
            proposal["action"],
            [refusal["why"] for refusal in proposal["refusals"]],
        )
        for proposal in proposals
    ] == [
        (2, "demote", []),
        (2, "quarantine_restart", []),
        (2, "evacuate", ["too_young", "proposed_only"]),
    ]


def test_what_only_the_broker_can_lead_stays_with_it_and_the_rest_is_demoted(
    testbed: MitigationTestbed,
) -> None:
    """min.insync.replicas does not matter, as the broker stays in sync."""
    single_replica_topic = testbed.create_topic((2,))
    testbed.create_topic((2, 3), **{"min.insync.replicas": "2"})
    case = testbed.run_command(*APPLY, "--execute")
    assert case["outcome"] == "done"
    assert case["words"] == [
        f"1 partitions stay with broker 2, because no other replica is in sync: {single_replica_topic}-0"
    ]
    assert testbed.metadata().led_by(2) == {TopicPartition(single_replica_topic, 0)}
    testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=0)
    assert testbed.run_command("undo", case["case"], "--execute")["outcome"] == "undone"


def test_a_broker_needed_for_min_insync_replicas_is_not_quarantined(testbed: MitigationTestbed) -> None:
    testbed.create_topic((2, 3), **{"min.insync.replicas": "2"})
    assert "min_in_sync" in testbed.read_refusals(2, "--action", "quarantine_restart")


def test_with_two_unhealthy_brokers_none_is_demoted(testbed: MitigationTestbed) -> None:
    testbed.publish_finding(3, HealthState.DEGRADED)
    assert testbed.read_refusals() == ["second_sick"]


def test_without_a_running_watch_earlier_findings_are_no_reason_to_act(testbed: MitigationTestbed) -> None:
    testbed.watch.stop()
    assert testbed.read_refusals() == ["no_watch"]


def test_a_broker_in_planned_maintenance_is_not_demoted(testbed: MitigationTestbed) -> None:
    now = datetime.now(UTC)
    row = maintenance_row(
        now - timedelta(hours=1), now + timedelta(hours=1), cluster_id="mitigated", broker_id=2
    )
    put(testbed.folder / "lake", CORRECTIONS, [row])
    assert testbed.read_refusals() == ["planned"]


def test_a_reorder_that_would_move_data_is_rejected(testbed: MitigationTestbed) -> None:
    """An operator has reassigned the partition since its replicas were read."""
    topic = testbed.create_topic((2, 1))
    with pytest.raises(KafkaUnavailableError, match=f"{topic}-0: its replicas or their order were changed"):
        reorder_replicas(
            testbed.access, {TopicPartition(topic, 0): (3, 2)}, {TopicPartition(topic, 0): [(3, 2), (2, 3)]}
        )
    assert testbed.read_replicas(topic) == {0: (2, 1)}
    with pytest.raises(KafkaUnavailableError, match="their order were changed in the meantime"):
        reorder_replicas(
            testbed.access, {TopicPartition(topic, 0): (1, 2)}, {TopicPartition(topic, 0): [(1, 2)]}
        )
    assert testbed.read_replicas(topic) == {0: (2, 1)}
    assert reorder_replicas(
        testbed.access, {TopicPartition(topic, 0): (1, 2)}, {TopicPartition(topic, 0): [(2, 1)]}
    )
    wait_until(lambda: testbed.read_replicas(topic) == {0: (1, 2)}, DEADLINE_S, "the order")


def test_during_a_reassignment_no_broker_is_demoted(testbed: MitigationTestbed) -> None:
    topic = testbed.create_topic((1, 3), **{"min.insync.replicas": "1"})
    _fill(testbed.access.bootstrap, topic)
    with _throttled(testbed, topic):
        assert reassign_topic(testbed.access, topic, {0: (1, 2)})
        assert testbed.read_refusals() == ["moving"]
    wait_until(lambda: not testbed.metadata().reassigning, DEADLINE_S, "the reassignment")


def test_while_a_broker_of_another_zone_is_demoted_no_broker_is_demoted(testbed: MitigationTestbed) -> None:
    store_action(testbed, 3, "z3", ActionOutcome.DONE)
    assert testbed.read_refusals() == ["other_zone"]


def test_while_the_circuit_breaker_is_open_no_broker_is_demoted(testbed: MitigationTestbed) -> None:
    """It was opened by a failed action on the same broker, so that the rule about zones does not apply."""
    store_action(testbed, 2, "z2", ActionOutcome.FAILED)
    assert testbed.read_refusals() == ["already", "circuit_open"]


def test_a_disabled_action_is_neither_executed_nor_proposed(testbed: MitigationTestbed) -> None:
    testbed.update_fleet_file(mitigation={"demote": False})
    assert testbed.read_refusals() == ["off"]
    assert "demote" not in [proposal["action"] for proposal in testbed.run_command("plan")]


def test_an_evacuation_is_proposed_only(testbed: MitigationTestbed) -> None:
    assert testbed.read_refusals(2, "--action", "evacuate") == ["too_young", "proposed_only"]


def test_a_hung_broker_is_restarted_and_returns(
    testbed: MitigationTestbed, mitigated_fleet: LocalFleet
) -> None:
    testbed.publish_finding(2, HealthState.BROKER_DOWN)
    mitigated_fleet.fault("hang", "mitigated", 2)
    wait_until(lambda: testbed.metadata().brokers[2].fenced, DEADLINE_S, "the broker to be fenced")
    case = testbed.run_command(*APPLY, "--action", "restart", "--execute")
    assert (case["outcome"], case["reason"]) == ("done", "DEGRADED, BROKER_DOWN")
    assert not testbed.metadata().brokers[2].fenced
    # The restart has ended, so only the minimum interval between two actions refuses another one.
    refusals = testbed.run_command(*APPLY, "--action", "restart", exit_code=1)["refusals"]
    assert [refusal["why"] for refusal in refusals] == ["too_soon"]
    wait_until(lambda: _in_sync_everywhere(testbed, 2), DEADLINE_S, "broker 2 to catch up")


def test_a_late_finding_of_a_partitioned_watch_does_not_reopen_an_alert(testbed: MitigationTestbed) -> None:
    """It arrives after another watch has published that the alert is over."""
    testbed.publish_finding(2, HealthState.HEALTHY, minutes_ago=1)
    testbed.publish_finding(2, HealthState.DEGRADED, minutes_ago=4)
    assert testbed.read_refusals() == ["no_finding"]


def test_two_processes_do_not_act_on_a_cluster_at_the_same_time(testbed: MitigationTestbed) -> None:
    telemetry = testbed.agent.telemetry
    with hold_cluster_leadership(telemetry, "mitigated"), hold_cluster_leadership(telemetry, "another"):
        result = CliRunner().invoke(
            mitigate,
            [*APPLY, "--execute", "--config", str(testbed.folder / "fleet.yaml")],
        )
    assert result.exit_code == 2
    assert "not elected leader of the consumer group fleetgauge-mitigate.mitigated" in result.stderr
    assert testbed.run_command("history") == []


def _in_sync_everywhere(testbed: MitigationTestbed, broker: int) -> bool:
    return all(broker in metadata.in_sync for metadata in testbed.metadata().replicated_on(broker).values())


def _fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(200):
        producer.produce(topic, bytes(10_000))
    assert producer.flush(DEADLINE_S) == 0


@contextmanager
def _throttled(testbed: MitigationTestbed, topic: str) -> Iterator[None]:
    """Stop the replication to new replicas of the topic."""

    def alter(resource_type: Any, name: str, key: str, value: str | None) -> None:
        operation = AlterConfigOpType.SET if value else AlterConfigOpType.DELETE
        entry = ConfigEntry(key, value or "", incremental_operation=operation)
        resource = ConfigResource(resource_type, name, incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": testbed.access.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    def limit(rate: str | None, replicas: str | None) -> None:
        alter(ResourceType.TOPIC, topic, "follower.replication.throttled.replicas", replicas)
        alter(ResourceType.BROKER, "2", "follower.replication.throttled.rate", rate)

    limit("1", "*")
    try:
        yield
    finally:
        limit(None, None)
