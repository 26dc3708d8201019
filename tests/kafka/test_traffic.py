"""What uses a demo's regions, while their brokers hang and die: it goes on, and ends when it is told to."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from fleetgauge_core.fleet import load
from fleetgauge_core.kafka import Groups, KafkaUnavailableError
from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import REGIONS
from fleetgauge_local.services import Services
from fleetgauge_local.traffic import BILLING, FLOWS, committed, traffic_spec
from tests.waiting import wait_until

DEADLINE_S = 60
PROMPTLY_S = 8
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    with LocalFleet(tmp_path_factory.mktemp("traffic"), REGIONS.clusters, mirrors=REGIONS.mirrors) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def traffic(regions: LocalFleet) -> Iterator[Services]:
    with Services(regions.fleet_file.parent / "logs") as services:
        services.start(traffic_spec(regions.fleet_file))
        yield services


def consumer_of(fleet: LocalFleet, cluster: str) -> Consumer:
    return Consumer({"bootstrap.servers": fleet.bootstrap(cluster), "group.id": "tests", **QUIET})


def written(fleet: LocalFleet, cluster: str, topic: str) -> int:
    """How many records the topic has had."""
    consumer = consumer_of(fleet, cluster)
    try:
        partitions = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, one), DEADLINE_S)[1] for one in partitions
        )
    finally:
        consumer.close()


def consumed(fleet: LocalFleet, group: str = BILLING.group) -> int:
    """How much of its topic a group has committed."""
    (flow,) = (one for one in FLOWS if one.group == group)
    groups = Groups(load(fleet.fleet_file).cluster("north-all").access, "tests", DEADLINE_S)
    groups.start()
    try:
        return sum(committed(groups, flow).values())
    except KafkaUnavailableError:
        return 0
    finally:
        groups.stop()


def has_ended(services: Services) -> bool:
    try:
        services.check()
    except LocalFleetError:
        return True
    return False


def wait_for_more(count: Callable[[], int], than: int, what: str) -> None:
    wait_until(lambda: count() > than, DEADLINE_S, what)


def test_records_of_both_regions_are_consumed_in_the_first_aggregate(
    regions: LocalFleet, traffic: Services
) -> None:
    for flow in FLOWS:
        wait_for_more(lambda flow=flow: consumed(regions, flow.group), 0, f"{flow.group} to commit")
        for region in ("north", "south"):
            assert written(regions, region, flow.topic) > 0
    consumer = consumer_of(regions, "north")
    consumer.assign([TopicPartition("payments", 0, OFFSET_BEGINNING)])
    first = [consumer.poll(DEADLINE_S) for _ in range(3)]
    consumer.close()
    assert [one and (one.key(), one.value()) for one in first] == [
        (b"customer-0", b"north 0"),
        (b"customer-1", b"north 1"),
        (b"customer-2", b"north 2"),
    ]


def test_a_hung_aggregate_holds_up_its_groups_alone(regions: LocalFleet, traffic: Services) -> None:
    regions.fault("hang", "north-all", 1)
    try:
        for region in ("north", "south"):
            before = written(regions, region, "orders")
            wait_for_more(lambda region=region: written(regions, region, "orders"), before + 40, region)
        traffic.check()
    finally:
        regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    wait_for_more(lambda: consumed(regions), consumed(regions) + 40, "billing to go on")
    traffic.check()


def test_a_killed_aggregate_holds_up_its_groups_alone(regions: LocalFleet, traffic: Services) -> None:
    before = consumed(regions)
    regions.fault("kill", "north-all", 1)
    south = written(regions, "south", "orders")
    wait_for_more(lambda: written(regions, "south", "orders"), south + 30, "records of south")
    regions.fault("heal", "north-all", 1)
    regions.wait_ready()
    wait_for_more(lambda: consumed(regions), before + 50, "billing to go on")
    traffic.check()


def test_a_killed_region_loses_nothing_and_holds_up_no_other(regions: LocalFleet, traffic: Services) -> None:
    before = written(regions, "north", "payments")
    regions.fault("kill", "north", 1)
    south = written(regions, "south", "payments")
    wait_for_more(lambda: written(regions, "south", "payments"), south + 30, "records of south")
    regions.fault("heal", "north", 1)
    regions.wait_ready()
    wait_for_more(lambda: written(regions, "north", "payments"), before + 50, "records of north")
    traffic.check()
    consumer = consumer_of(regions, "north")
    consumer.assign([TopicPartition("payments", 0, OFFSET_BEGINNING)])
    values = [consumer.poll(DEADLINE_S) for _ in range(before + 50)]
    consumer.close()
    assert [one and one.value() for one in values] == [f"north {n}".encode() for n in range(before + 50)]


def test_it_ends_at_once_even_where_nobody_answers(regions: LocalFleet, traffic: Services) -> None:
    log = traffic.log("traffic")
    before = log.read_text().count("begins again")
    regions.fault("hang", "north-all", 1)
    regions.fault("hang", "south", 1)
    try:
        wait_until(lambda: log.read_text().count("begins again") > before, DEADLINE_S, "it to notice")
        (pid,) = traffic.pids().values()
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: has_ended(traffic), PROMPTLY_S, "it to end")
    finally:
        regions.fault("heal", "south", 1)
        regions.fault("heal", "north-all", 1)
    with pytest.raises(LocalFleetError, match="traffic ended with exit code 0"):
        traffic.check()
