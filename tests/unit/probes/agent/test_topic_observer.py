"""Observation of the probe topic of a cluster of which a part does not answer."""

from typing import Any

import pytest

from fleetgauge_core.kafka import KafkaUnavailableError, TopicMetadata
from fleetgauge_probes.agent.demotions import DemotionCache
from fleetgauge_probes.agent.reconciler import Reconciler
from fleetgauge_probes.agent.topic_observer import TopicObserver
from tests.unit.probes.agent.cluster_bench import ClusterBench


class OneRound:
    """Lets an observer observe once; it is an admin client and a receiver too."""

    def __init__(self, topic: TopicMetadata | None, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._topic = topic
        self._failing = failing
        self._waits = iter((False, True))
        self.steps: list[str] = []
        bench = ClusterBench(monkeypatch)
        monkeypatch.setattr(Reconciler, "reconcile", lambda *_: self._step("reconcile"))
        demotions = DemotionCache("orders", dict)
        collaborators: Any = self
        observer = TopicObserver(
            bench.state, collaborators, demotions, bench.sender, collaborators, bench.read_uptime_ns
        )
        observer.run(collaborators)

    def wait(self, _: float) -> bool:
        return next(self._waits)

    def describe_topic(self, _: str) -> TopicMetadata | None:
        return self._topic

    def follow_topic(self, *_: object) -> None:
        self._step("follow")

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name == self._failing:
            raise KafkaUnavailableError("no answer")


@pytest.mark.parametrize("failing", ["reconcile", "follow"])
def test_probes_are_received_though_the_topic_cannot_be_reconciled_and_the_other_way_round(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = ClusterBench(monkeypatch).topic()
    assert OneRound(topic, failing, monkeypatch).steps == ["follow", "reconcile"]
    assert OneRound(None, failing, monkeypatch).steps == ["reconcile", "follow"]
