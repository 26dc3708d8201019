"""Delays, acknowledgements and loops computed from tracers in any order of events."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.tracers.plan.delays import (
    MirrorDelay,
    MirrorRoute,
    TracerAcks,
    TracerDelays,
    TracerMapping,
)
from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer

TO_ALL = MirrorRoute("north", "all")
TO_SOUTH = MirrorRoute("north", "south")
FROM_SOUTH = MirrorRoute("south", "all")


def build_delays() -> TracerDelays:
    return TracerDelays("run", [TO_ALL, TO_SOUTH, FROM_SOUTH])


def build_tracer(sequence: int, at_ms: int, cluster: str = "north", run: str = "run") -> Tracer:
    return Tracer(cluster, "tracers", 0, run, sequence, at_ms)


def record_sent(delays: TracerDelays, *sent_tracers: Tracer) -> None:
    for sent_tracer in sent_tracers:
        delays.add_sent(sent_tracer)
        delays.add_acknowledged(sent_tracer, offset=100 + sent_tracer.sequence, latency_ms=3)


def test_the_delay_of_a_mirror_is_that_of_its_tracers() -> None:
    tracers = build_delays()
    record_sent(tracers, build_tracer(1, 1_000), build_tracer(2, 6_000))
    tracers.add_seen(build_tracer(1, 1_000), "all", 50, at_ms=1_400)
    tracers.add_seen(build_tracer(2, 6_000), "all", 52, at_ms=6_200)
    assert tracers.take_delays(7_000)[TO_ALL] == MirrorDelay((400, 200), late_s=0.2)
    assert tracers.take_delays(9_000)[TO_ALL] == MirrorDelay((), late_s=0.2)
    assert tracers.take_acks() == {"north": TracerAcks(2, (3, 3)), "south": TracerAcks()}
    assert tracers.take_acks()["north"] == TracerAcks()


def test_a_missing_tracer_is_late_by_its_age() -> None:
    tracers = build_delays()
    record_sent(tracers, build_tracer(1, 1_000), build_tracer(2, 6_000), build_tracer(3, 11_000))
    tracers.add_seen(build_tracer(1, 1_000), "all", 50, at_ms=1_400)
    assert tracers.take_delays(31_000)[TO_ALL].late_s == 25.0
    assert tracers.take_delays(31_000)[TO_SOUTH].late_s == 30.0
    tracers.add_seen(build_tracer(2, 6_000), "all", 51, at_ms=32_000)
    tracers.add_seen(build_tracer(3, 11_000), "all", 52, at_ms=32_000)
    assert tracers.take_delays(33_000)[TO_ALL] == MirrorDelay((26_000, 21_000), late_s=21.0)


def test_the_delay_is_unknown_before_the_first_acknowledged_tracer() -> None:
    tracers = build_delays()
    tracers.add_sent(build_tracer(1, 1_000))
    assert tracers.take_delays(9_000)[TO_ALL] == MirrorDelay()
    assert tracers.take_acks()["north"] == TracerAcks(sent=1)


def test_a_tracer_overtaken_by_a_later_one_is_not_late() -> None:
    tracers = build_delays()
    record_sent(tracers, build_tracer(1, 1_000), build_tracer(2, 2_000), build_tracer(3, 3_000))
    assert tracers.take_delays(60_000)[TO_ALL].late_s == 59.0
    tracers.add_seen(build_tracer(2, 2_000), "all", 50, at_ms=60_000)
    assert tracers.take_delays(62_000)[TO_ALL] == MirrorDelay((58_000,), late_s=59.0)
    tracers.add_seen(build_tracer(3, 3_000), "all", 51, at_ms=62_000)
    assert tracers.take_delays(90_000)[TO_ALL] == MirrorDelay((59_000,), late_s=59.0)


def test_a_tracer_acknowledged_after_a_later_one_arrived_is_not_late() -> None:
    tracers = build_delays()
    record_sent(tracers, build_tracer(2, 2_000))
    tracers.add_seen(build_tracer(2, 2_000), "all", 50, at_ms=2_100)
    record_sent(tracers, build_tracer(1, 1_000))
    assert tracers.take_delays(90_000)[TO_ALL] == MirrorDelay((100,), late_s=0.1)


def test_a_stalled_mirror_stays_late_when_no_more_tracers_are_sent() -> None:
    tracers = build_delays()
    for sequence in (1, 2):
        record_sent(tracers, build_tracer(sequence, 1_000 * sequence))
    tracers.add_seen(build_tracer(1, 1_000), "all", 50, at_ms=1_100)
    assert tracers.take_delays(8_002_000)[TO_ALL].late_s == 8_000


def test_a_tracer_may_arrive_before_its_acknowledgement_and_again_after_a_restart() -> None:
    tracers = build_delays()
    tracers.add_sent(build_tracer(1, 1_000))
    tracers.add_seen(build_tracer(1, 1_000), "all", 50, at_ms=1_100)
    assert tracers.take_mappings() == ()
    tracers.add_acknowledged(build_tracer(1, 1_000), 101, latency_ms=200)
    assert tracers.take_mappings() == (TracerMapping(TO_ALL, 101, 50, 1_100),)
    tracers.add_seen(build_tracer(1, 1_000), "all", 90, at_ms=60_000)
    assert (tracers.take_mappings(), tracers.take_delays(60_000)[TO_ALL]) == (
        (),
        MirrorDelay((100,), late_s=0.1),
    )


def test_a_tracer_seen_twice_at_its_source_is_looped() -> None:
    tracers = build_delays()
    record_sent(tracers, build_tracer(1, 1_000))
    tracers.add_seen(build_tracer(1, 1_000), "north", 101, at_ms=1_001)
    assert tracers.take_delays(2_000)[TO_ALL].looped == 0
    tracers.add_seen(build_tracer(1, 1_000), "north", 140, at_ms=3_000)
    tracers.add_seen(build_tracer(1, 1_000, run="another"), "north", 141, at_ms=3_000)
    assert {route: delay.looped for route, delay in tracers.take_delays(4_000).items()} == {
        TO_ALL: 1,
        TO_SOUTH: 1,
        FROM_SOUTH: 0,
    }
    assert tracers.take_delays(5_000)[TO_ALL].looped == 0


def test_tracers_of_another_run_do_not_count_as_delay() -> None:
    tracers = build_delays()
    tracers.add_seen(build_tracer(1, 1_000, run="another"), "all", 50, at_ms=90_000)
    tracers.add_seen(build_tracer(1, 1_000, cluster="unknown"), "all", 50, at_ms=90_000)
    assert tracers.take_delays(90_000)[TO_ALL] == MirrorDelay()


@given(
    took=st.lists(st.integers(0, 10_000), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=3),
)
def test_merged_intervals_equal_one_interval(took: Sequence[int], cuts: Sequence[int]) -> None:
    whole, parts, merged = build_delays(), build_delays(), MirrorDelay()
    for number, took_ms in enumerate(took):
        sent_tracer = build_tracer(number, 1_000 * number)
        for tracers in (whole, parts):
            record_sent(tracers, sent_tracer)
            tracers.add_seen(sent_tracer, "all", number, sent_tracer.produced_ms + took_ms)
        if number in cuts:
            merged = merged.merge(parts.take_delays(100_000)[TO_ALL])
    assert merged.merge(parts.take_delays(100_000)[TO_ALL]) == whole.take_delays(100_000)[TO_ALL]
