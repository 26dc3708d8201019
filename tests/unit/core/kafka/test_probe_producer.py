"""The leaders to which a probe producer sends, parsed from librdkafka's statistics."""

import json
from collections.abc import Mapping
from typing import Any

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import LeaderAndEpoch, ProbeProducer

TOPIC = "probes"


def leaders_in(statistics: Mapping[str, Any]) -> list[Mapping[int, LeaderAndEpoch]]:
    """Return the calls of ``on_leaders`` for one emission of statistics."""
    reported: list[Mapping[int, LeaderAndEpoch]] = []
    producer = ProbeProducer(
        ClusterAccess("nowhere:9092"),
        TOPIC,
        "1",
        lambda *_: None,
        lambda _, leaders: reported.append(leaders),
    )
    # librdkafka writes JSON without spaces.
    producer._report_leaders(json.dumps(statistics, separators=(",", ":")))
    return reported


def partition(leader: int, **more: int) -> dict[str, int]:
    return {"partition": 0, "leader": leader, **more}


def test_each_partition_has_the_leader_and_epoch_from_the_statistics() -> None:
    partitions = {"0": partition(3, leader_epoch=7), "1": partition(-1), "-1": partition(-1)}
    statistics = {
        # These names resemble the key at which the topics begin.
        "client_id": "topics",
        "brokers": {"topics:9092/3": {"name": '"topics', "toppars": {"topics-0": {"topic": "topics"}}}},
        "topics": {"topics": {"partitions": {"0": partition(9)}}, TOPIC: {"partitions": partitions}},
        "tx": 12,
    }
    assert leaders_in(statistics) == [{0: LeaderAndEpoch(3, 7), 1: LeaderAndEpoch(None, None)}]


def test_statistics_without_the_topic_are_not_reported() -> None:
    assert leaders_in({"brokers": {}, "topics": {}}) == []
