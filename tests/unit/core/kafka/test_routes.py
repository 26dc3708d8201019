"""Whom a producer routes to, out of librdkafka's statistics."""

import json
from collections.abc import Mapping
from typing import Any

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import ProbeProducer, Route

TOPIC = "probes"


def routes_in(statistics: Mapping[str, Any]) -> list[Mapping[int, Route]]:
    told: list[Mapping[int, Route]] = []
    producer = ProbeProducer(
        Access("nowhere:9092"), TOPIC, "1", lambda *_: None, lambda _, routes: told.append(routes)
    )
    # As librdkafka writes it.
    producer._statistics(json.dumps(statistics, separators=(",", ":")))
    return told


def partition(leader: int, **more: int) -> dict[str, int]:
    return {"partition": 0, "leader": leader, **more}


def test_each_partition_has_the_leader_that_the_producer_knows() -> None:
    partitions = {"0": partition(3, leader_epoch=7), "1": partition(-1), "-1": partition(-1)}
    statistics = {
        # Names that look like the place where topics begin.
        "client_id": "topics",
        "brokers": {"topics:9092/3": {"name": '"topics', "toppars": {"topics-0": {"topic": "topics"}}}},
        "topics": {"topics": {"partitions": {"0": partition(9)}}, TOPIC: {"partitions": partitions}},
        "tx": 12,
    }
    assert routes_in(statistics) == [{0: Route(3, 7), 1: Route(None, None)}]


def test_before_the_topic_is_known_there_is_nothing_to_tell() -> None:
    assert routes_in({"brokers": {}, "topics": {}}) == []
