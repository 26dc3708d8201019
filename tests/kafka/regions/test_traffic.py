"""The demo's producers and consumers continue while brokers hang or die, and stop on request."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.kafka import ConsumerGroups, KafkaUnavailableError
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.services import Services
from fleetgauge_local.traffic import BILLING, WORKLOADS, build_traffic_service, read_committed
from tests.waiting import wait_until

DEADLINE_S = 60
STOP_TIMEOUT_S = 8
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}


@pytest.fixture(scope="module")
def traffic(regions: LocalFleet) -> Iterator[Services]:
    with Services(regions.fleet_file.parent / "logs") as services:
        services.start(build_traffic_service(regions.fleet_file))
        yield services


def create_consumer(fleet: LocalFleet, cluster: str) -> Consumer:
    return Consumer({"bootstrap.servers": fleet.bootstrap(cluster), "group.id": "tests", **QUIET})


def count_written(fleet: LocalFleet, cluster: str, topic: str) -> int:
    """Return how many records have been written to the topic."""
    consumer = create_consumer(fleet, cluster)
    try:
        partitions = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, number), DEADLINE_S)[1]
            for number in partitions
        )
    finally:
        consumer.close()


def count_committed(fleet: LocalFleet, group: str = BILLING.group) -> int:
    """Return the sum of a group's committed offsets; 0 if they cannot be read."""
    (flow,) = (flow for flow in WORKLOADS if flow.group == group)
    groups = ConsumerGroups(load_fleet(fleet.fleet_file).cluster("north-all").access, "tests", DEADLINE_S)
    groups.start()
    try:
        return sum(read_committed(groups, flow).values())
    except KafkaUnavailableError:
        return 0
    finally:
        groups.stop()


def has_ended(services: Services) -> bool:
    try:
        services.check_running()
    except LocalFleetError:
        return True
    return False


def wait_for_more(count: Callable[[], int], previous: int, what: str) -> None:
    wait_until(lambda: count() > previous, DEADLINE_S, what)


def test_records_of_both_regions_are_consumed_from_the_first_aggregate(
    regions: LocalFleet, traffic: Services
) -> None:
    for flow in WORKLOADS:
        wait_for_more(lambda flow=flow: count_committed(regions, flow.group), 0, f"{flow.group} to commit")
        for region in ("north", "south"):
            assert count_written(regions, region, flow.topic) > 0
    consumer = create_consumer(regions, "north")
    consumer.assign([TopicPartition("payments", 0, OFFSET_BEGINNING)])
    first = [consumer.poll(DEADLINE_S) for _ in range(3)]
    consumer.close()
    assert [message and (message.key(), message.value()) for message in first] == [
        (b"customer-0", b"north 0"),
        (b"customer-1", b"north 1"),
        (b"customer-2", b"north 2"),
    ]


def test_a_hung_aggregate_delays_only_its_own_groups(regions: LocalFleet, traffic: Services) -> None:
    regions.fault("hang", "north-all", 1)
    try:
        for region in ("north", "south"):
            before = count_written(regions, region, "orders")
            wait_for_more(lambda region=region: count_written(regions, region, "orders"), before + 40, region)
        traffic.check_running()
    finally:
        regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    wait_for_more(lambda: count_committed(regions), count_committed(regions) + 40, "billing to continue")
    traffic.check_running()


def test_a_killed_aggregate_delays_only_its_own_groups(regions: LocalFleet, traffic: Services) -> None:
    before = count_committed(regions)
    regions.fault("kill", "north-all", 1)
    south = count_written(regions, "south", "orders")
    wait_for_more(lambda: count_written(regions, "south", "orders"), south + 30, "records of south")
    regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    wait_for_more(lambda: count_committed(regions), before + 50, "billing to continue")
    traffic.check_running()


def test_a_killed_region_loses_no_record_and_delays_no_other_region(
    regions: LocalFleet, traffic: Services
) -> None:
    before = count_written(regions, "north", "payments")
    regions.fault("kill", "north", 1)
    south = count_written(regions, "south", "payments")
    wait_for_more(lambda: count_written(regions, "south", "payments"), south + 30, "records of south")
    regions.fault("heal", "north", 1)
    regions.wait_ready()
    wait_for_more(lambda: count_written(regions, "north", "payments"), before + 50, "records of north")
    traffic.check_running()
    consumer = create_consumer(regions, "north")
    consumer.assign([TopicPartition("payments", 0, OFFSET_BEGINNING)])
    messages = [consumer.poll(DEADLINE_S) for _ in range(before + 50)]
    consumer.close()
    assert [message and message.value() for message in messages] == [
        f"north {n}".encode() for n in range(before + 50)
    ]


def test_it_stops_promptly_while_no_broker_answers(regions: LocalFleet, traffic: Services) -> None:
    log = traffic.log_path("traffic")
    before = log.read_text().count("restarting it")
    regions.fault("hang", "north-all", 1)
    regions.fault("hang", "south", 1)
    try:
        wait_until(lambda: log.read_text().count("restarting it") > before, DEADLINE_S, "a restart of a flow")
        (pid,) = traffic.pids().values()
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: has_ended(traffic), STOP_TIMEOUT_S, "the process to end")
    finally:
        regions.fault("heal", "south", 1)
        regions.fault("heal", "north-all", 1)
    with pytest.raises(LocalFleetError, match="traffic ended with exit code 0"):
        traffic.check_running()
