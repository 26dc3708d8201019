from datetime import timedelta

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_core.kafka import BootstrapMeasurement, ConnectionFailure
from fleetgauge_probes.agent.broker_progress import BrokerCounters
from fleetgauge_probes.agent.pulse_builder import PulseBuilder
from tests.unit.probes.agent.cluster_bench import AGENT, NOON, SECOND_NS, ClusterBench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    return ClusterBench(monkeypatch)


@pytest.fixture
def pulses(bench: ClusterBench) -> PulseBuilder:
    return PulseBuilder(AGENT, bench.state, bench.clock, bench.pauses)


def test_a_pulse_is_due_every_five_seconds(bench: ClusterBench, pulses: PulseBuilder) -> None:
    assert pulses.is_due(bench.now_ns)
    first = pulses.build(bench.now_ns, None)
    assert not pulses.is_due(bench.now_ns + 5 * SECOND_NS - 1)
    bench.advance(5)
    assert pulses.is_due(bench.now_ns)
    second = pulses.build(bench.now_ns, None)
    assert (first.sequence, second.sequence) == (1, 2)
    assert second.emitted_at - first.emitted_at == timedelta(seconds=5)


def test_no_pulse_is_due_shortly_after_a_long_pause_of_the_process(
    bench: ClusterBench, pulses: PulseBuilder
) -> None:
    bench.now_ns += 20 * SECOND_NS
    bench.pauses.record_heartbeat(bench.now_ns)
    assert not pulses.is_due(bench.now_ns)
    bench.advance(4.5)
    assert pulses.is_due(bench.now_ns)


def test_a_pulse_describes_each_broker_by_its_connections_counters_and_legs(
    bench: ClusterBench, pulses: PulseBuilder
) -> None:
    bench.start_probing()
    bench.send_for(3)
    bench.respond(1)
    bench.fail_connection(2, ConnectionFailure.NO_RESPONSE)
    counters = BrokerCounters(queued_requests=7, completed_requests=1, replicated_bytes=0, offline_log_dirs=2)
    bench.state.progress.record(2, bench.now_ns, counters)
    bench.advance(1)
    first, second, third = pulses.build(bench.now_ns, None).brokers
    assert (first.broker_id, first.answer_age_ms, first.answer_us, first.silence) == (1, 1000, 900, None)
    assert (first.in_sync, first.leads, first.fenced) == (True, False, False)
    assert (second.answer_us, second.silence) == (None, "mute")
    assert (second.requests_waiting, second.stalled_ms, second.offline_dirs) == (7, 0, 2)
    assert (third.silence, third.requests_waiting, third.offline_dirs) == (None, None, None)
    assert {leg.leg: leg.outstanding for leg in third.legs} == {Leg.CLIENT: 5, Leg.LEADER: 0}
    assert {leg.leg: leg.failed for leg in third.legs} == {Leg.CLIENT: 0, Leg.LEADER: 5}


def test_a_pulse_has_the_latest_cold_bootstrap(bench: ClusterBench, pulses: PulseBuilder) -> None:
    ended_ns = bench.now_ns
    bench.advance(2)
    succeeded = pulses.build(bench.now_ns, BootstrapMeasurement(ended_ns - 3_000_000, ended_ns, None))
    assert (succeeded.bootstrap_age_ms, succeeded.bootstrap_us, succeeded.bootstrap_failure) == (
        2000,
        3000,
        None,
    )
    failed = pulses.build(bench.now_ns, BootstrapMeasurement(ended_ns - 3_000_000, ended_ns, "timed_out"))
    assert (failed.bootstrap_us, failed.bootstrap_failure) == (None, "timed_out")
    assert pulses.build(bench.now_ns, None).bootstrap_age_ms is None


def test_a_pulse_before_the_first_registration_has_no_brokers(
    bench: ClusterBench, pulses: PulseBuilder
) -> None:
    bench.state.registered = {}
    pulse = pulses.build(bench.now_ns, None)
    assert (pulse.brokers, pulse.emitted_at, pulse.window_ms) == ((), NOON, 15_000)
