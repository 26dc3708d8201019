from datetime import timedelta

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.minute_reporter import MinuteReporter
from tests.unit.probes.agent.cluster_bench import AGENT, NOON, ClusterBench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    bench = ClusterBench(monkeypatch)
    bench.start_probing()
    return bench


@pytest.fixture
def reporter(bench: ClusterBench) -> MinuteReporter:
    return MinuteReporter(AGENT, bench.state, bench.clock)


def test_a_minute_is_closed_once_after_all_its_probes_are_decided(
    bench: ClusterBench, reporter: MinuteReporter
) -> None:
    bench.send_for(49)
    assert reporter.close_finished_minutes(bench.legs(), bench.now_ns) == ()
    bench.advance(14)
    records = reporter.close_finished_minutes(bench.legs(), bench.now_ns)
    assert [(record.broker_id, record.leg) for record in records] == list(bench.legs())
    assert {record.minute for record in records} == {NOON}
    assert {record.rack for record in records} == {"z1", "z2", "z3"}
    assert {record.expected_brokers for record in records} == {(1, 2, 3)}
    for record in records:
        failure = "NO_REPORT" if record.leg is Leg.CLIENT else "NOT_LEADING"
        assert record.produce_failures == {failure: record.attempted}
    assert reporter.close_finished_minutes(bench.legs(), bench.now_ns) == ()
    assert bench.state.record_sequences == {}


def test_twenty_rounds_report_every_open_minute_under_its_later_sequence(
    bench: ClusterBench, reporter: MinuteReporter
) -> None:
    bench.send_for(3)
    interim = [
        record for _ in range(20) for record in reporter.report_open_minutes(bench.legs(), bench.now_ns)
    ]
    assert sorted((record.broker_id, record.leg) for record in interim) == sorted(bench.legs())
    closed = reporter.close_all_minutes(bench.now_ns)
    assert {record.sequence for record in closed} == {record.sequence for record in interim} == set(range(6))


def test_at_the_end_minutes_are_closed_with_the_probes_that_are_decided(
    bench: ClusterBench, reporter: MinuteReporter
) -> None:
    for probe in bench.send_for(3)[:4]:
        probe.report(bench.now_ns, "MSG_TIMED_OUT")
    records = reporter.close_all_minutes(bench.now_ns)
    client_records = [record for record in records if record.leg is Leg.CLIENT]
    assert sum(record.attempted for record in client_records) == 4
    assert {record.emitted_at for record in records} == {NOON + timedelta(seconds=13.1)}


def test_excluded_probes_of_closed_minutes_are_counted_once(
    bench: ClusterBench, reporter: MinuteReporter
) -> None:
    sent = bench.send_for(1)
    bench.now_ns += 30_000_000_000
    bench.pauses.record_heartbeat(bench.now_ns)
    for probe in sent:
        probe.report(bench.now_ns, "MSG_TIMED_OUT")
    reporter.close_all_minutes(bench.now_ns)
    assert reporter.drain_excluded_probes() == len(sent)
    assert reporter.drain_excluded_probes() == 0
