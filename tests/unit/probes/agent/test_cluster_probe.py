"""A cluster probe with its threads, on fake Kafka clients."""

import time
from collections.abc import Callable, Iterator

import pytest

from fleetgauge_core.contract.failure_codes import AgentFault
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import (
    BrokerRegistry,
    KafkaSecurityError,
    KafkaUnavailableError,
    LoginSurvey,
    TopicMetadata,
)
from fleetgauge_core.metadata import PartitionMetadata
from fleetgauge_core.runtime.cli import ProcessFailedError
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_probes.agent import cluster_probe, registration
from fleetgauge_probes.agent.broker_progress import BrokerCounters
from fleetgauge_probes.agent.cluster_probe import ClusterProbe
from fleetgauge_probes.agent.cold_bootstraps import ColdBootstrapLoop
from fleetgauge_probes.agent.reconciler import Reconciler
from tests.unit.probes.agent.cluster_bench import ClusterBench, FakeReader

DEADLINE_S = 10


class FakeKafkaReader(FakeReader):
    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def poll(self, timeout_s: float) -> None:
        time.sleep(min(timeout_s, 0.01))


class FakeAdmin:
    """An admin client of a cluster that has the probe topic."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def start(self) -> None:
        pass

    def describe_topic(self, _: str) -> TopicMetadata:
        partition = PartitionMetadata(1, (1, 2, 3), frozenset({1, 2, 3}))
        return TopicMetadata("id", {0: partition})

    def read_topic_settings(self, _: str) -> dict[str, str]:
        return {}


class FakeRegistry:
    """The registry that a cluster returns, or the error of reading it."""

    def __init__(self, registry: BrokerRegistry) -> None:
        self.registry = registry
        self.error: KafkaUnavailableError | None = None

    def __call__(self, _: ClusterAccess) -> BrokerRegistry:
        if self.error:
            raise self.error
        return self.registry


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    monkeypatch.setattr(cluster_probe, "FollowedReader", FakeKafkaReader)
    monkeypatch.setattr(cluster_probe, "ClusterAdmin", FakeAdmin)
    monkeypatch.setattr(Reconciler, "reconcile", lambda *_: None)
    monkeypatch.setattr(ColdBootstrapLoop, "run", lambda _, shutdown, **__: shutdown.wait())
    monkeypatch.setattr(registration, "survey_logins", lambda _, brokers: LoginSurvey(frozenset(brokers)))
    monkeypatch.setattr(registration, "_INTERVAL_S", 0.01)
    monkeypatch.setattr(registration, "_RETRY_S", 0.01)
    return ClusterBench(monkeypatch, retired=[3], metrics={"2": "http://{host}:7071/metrics"})


@pytest.fixture
def registry(bench: ClusterBench, monkeypatch: pytest.MonkeyPatch) -> FakeRegistry:
    registry = FakeRegistry(BrokerRegistry("uuid", bench.state.registered))
    monkeypatch.setattr(registration, "read_broker_registry", registry)
    return registry


@pytest.fixture
def probe(bench: ClusterBench, registry: FakeRegistry) -> Iterator[ClusterProbe]:
    probe = bench.create_probe()
    yield probe
    probe.stop()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_registered_brokers_that_are_not_retired_are_probed(probe: ClusterProbe) -> None:
    probe.start()
    wait_until(lambda: probe.broker_ids() == (1, 2))
    pulse = probe.collect_report().pulse
    assert pulse is not None
    assert [broker.broker_id for broker in pulse.brokers] == [1, 2]


@pytest.mark.parametrize(
    "error", [KafkaSecurityError("rejected", "authentication"), KafkaUnavailableError("late")]
)
def test_an_unreachable_cluster_is_reported_with_its_reason_until_it_responds(
    probe: ClusterProbe, registry: FakeRegistry, error: KafkaUnavailableError
) -> None:
    registry.error = error
    probe.start()
    wait_until(lambda: probe.collect_report().unreachable_reason == error.reason)
    assert probe.broker_ids() == ()
    registry.error = None
    wait_until(lambda: probe.collect_report().unreachable_reason is None)
    wait_until(lambda: probe.broker_ids() == (1, 2))


def test_a_login_that_every_broker_refuses_is_the_agents_fault_until_one_accepts_it(
    probe: ClusterProbe, registry: FakeRegistry
) -> None:
    probe.start()
    wait_until(lambda: probe.broker_ids() == (1, 2))
    assert probe.collect_report().agent_faults == frozenset()
    registry.error = KafkaSecurityError("rejected", "authentication")
    wait_until(lambda: probe.collect_report().agent_faults == {AgentFault.CREDENTIALS})


def test_counters_of_an_exporter_appear_in_the_pulse(probe: ClusterProbe) -> None:
    probe.start()
    wait_until(lambda: probe.broker_ids() == (1, 2))
    counters = BrokerCounters(queued_requests=7, completed_requests=1, replicated_bytes=0, offline_log_dirs=0)
    probe.record_counters(2, counters)
    pulse = probe.collect_report().pulse
    assert pulse is not None
    assert [broker.requests_waiting for broker in pulse.brokers] == [None, 7]
    assert probe.exporter_urls() == {2: "http://kafka-2:7071/metrics"}


def test_a_defect_in_a_thread_ends_the_process(probe: ClusterProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("defect")

    monkeypatch.setattr(registration, "read_broker_registry", fail)

    def run_supervised() -> None:
        with supervise_process(DEADLINE_S) as shutdown:
            probe.start()
            wait_until(shutdown.is_set)

    with pytest.raises(ProcessFailedError, match="the thread orders-register failed: RuntimeError: defect"):
        run_supervised()
