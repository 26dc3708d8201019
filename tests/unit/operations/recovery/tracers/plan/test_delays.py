"""What tracers tell, in whatever order acknowledgements and copies come."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.recovery.tracers.plan.delays import (
    Acks,
    Delay,
    Delays,
    Pairing,
    Way,
)
from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer

THERE = Way("north", "all")
ELSEWHERE = Way("north", "south")
FROM_SOUTH = Way("south", "all")


def delays() -> Delays:
    return Delays("run", [THERE, ELSEWHERE, FROM_SOUTH])


def tracer(sequence: int, at_ms: int, cluster: str = "north", run: str = "run") -> Tracer:
    return Tracer(cluster, "tracers", 0, run, sequence, at_ms)


def sent(to: Delays, *tracers: Tracer) -> None:
    for one in tracers:
        to.sent(one)
        to.acknowledged(one, offset=100 + one.sequence, took_ms=3)


def test_a_mirror_takes_as_long_as_its_tracers() -> None:
    of = delays()
    sent(of, tracer(1, 1_000), tracer(2, 6_000))
    of.seen(tracer(1, 1_000), "all", 50, at_ms=1_400)
    of.seen(tracer(2, 6_000), "all", 52, at_ms=6_200)
    assert of.delays(7_000)[THERE] == Delay((400, 200), late_s=0.2)
    assert of.delays(9_000)[THERE] == Delay((), late_s=0.2)
    assert of.acks() == {"north": Acks(2, (3, 3)), "south": Acks()}
    assert of.acks()["north"] == Acks()


def test_one_that_does_not_come_is_late_by_its_age() -> None:
    of = delays()
    sent(of, tracer(1, 1_000), tracer(2, 6_000), tracer(3, 11_000))
    of.seen(tracer(1, 1_000), "all", 50, at_ms=1_400)
    assert of.delays(31_000)[THERE].late_s == 25.0
    assert of.delays(31_000)[ELSEWHERE].late_s == 30.0
    of.seen(tracer(2, 6_000), "all", 51, at_ms=32_000)
    of.seen(tracer(3, 11_000), "all", 52, at_ms=32_000)
    assert of.delays(33_000)[THERE] == Delay((26_000, 21_000), late_s=21.0)


def test_before_any_tracer_nobody_knows() -> None:
    of = delays()
    of.sent(tracer(1, 1_000))
    assert of.delays(9_000)[THERE] == Delay()
    assert of.acks()["north"] == Acks(sent=1)


def test_what_a_later_one_has_overtaken_is_not_late() -> None:
    of = delays()
    sent(of, tracer(1, 1_000), tracer(2, 2_000), tracer(3, 3_000))
    assert of.delays(60_000)[THERE].late_s == 59.0
    of.seen(tracer(2, 2_000), "all", 50, at_ms=60_000)
    assert of.delays(62_000)[THERE] == Delay((58_000,), late_s=59.0)
    of.seen(tracer(3, 3_000), "all", 51, at_ms=62_000)
    assert of.delays(90_000)[THERE] == Delay((59_000,), late_s=59.0)


def test_nor_is_one_that_is_acknowledged_after_a_later_one_came() -> None:
    of = delays()
    sent(of, tracer(2, 2_000))
    of.seen(tracer(2, 2_000), "all", 50, at_ms=2_100)
    sent(of, tracer(1, 1_000))
    assert of.delays(90_000)[THERE] == Delay((100,), late_s=0.1)


def test_a_mirror_that_stands_still_is_no_better_after_an_hour_though_its_source_sends_no_more() -> None:
    of = delays()
    for sequence in (1, 2):
        sent(of, tracer(sequence, 1_000 * sequence))
    of.seen(tracer(1, 1_000), "all", 50, at_ms=1_100)
    assert of.delays(8_002_000)[THERE].late_s == 8_000


def test_a_copy_may_be_seen_before_its_acknowledgement_and_again_after_the_mirror_began_again() -> None:
    of = delays()
    of.sent(tracer(1, 1_000))
    of.seen(tracer(1, 1_000), "all", 50, at_ms=1_100)
    assert of.pairings() == ()
    of.acknowledged(tracer(1, 1_000), 101, took_ms=200)
    assert of.pairings() == (Pairing(THERE, 101, 50, 1_100),)
    of.seen(tracer(1, 1_000), "all", 90, at_ms=60_000)
    assert (of.pairings(), of.delays(60_000)[THERE]) == ((), Delay((100,), late_s=0.1))


def test_one_that_is_home_twice_has_gone_round() -> None:
    of = delays()
    sent(of, tracer(1, 1_000))
    of.seen(tracer(1, 1_000), "north", 101, at_ms=1_001)
    assert of.delays(2_000)[THERE].looped == 0
    of.seen(tracer(1, 1_000), "north", 140, at_ms=3_000)
    of.seen(tracer(1, 1_000, run="another"), "north", 141, at_ms=3_000)
    assert {way: one.looped for way, one in of.delays(4_000).items()} == {
        THERE: 1,
        ELSEWHERE: 1,
        FROM_SOUTH: 0,
    }
    assert of.delays(5_000)[THERE].looped == 0


def test_another_run_says_nothing_of_how_long_it_takes() -> None:
    of = delays()
    of.seen(tracer(1, 1_000, run="another"), "all", 50, at_ms=90_000)
    of.seen(tracer(1, 1_000, cluster="nobody's"), "all", 50, at_ms=90_000)
    assert of.delays(90_000)[THERE] == Delay()


@given(
    took=st.lists(st.integers(0, 10_000), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=3),
)
def test_stretches_put_together_are_as_one(took: Sequence[int], cuts: Sequence[int]) -> None:
    whole, parts, told = delays(), delays(), Delay()
    for number, took_ms in enumerate(took):
        one = tracer(number, 1_000 * number)
        for of in (whole, parts):
            sent(of, one)
            of.seen(one, "all", number, one.produced_ms + took_ms)
        if number in cuts:
            told = told.then(parts.delays(100_000)[THERE])
    assert told.then(parts.delays(100_000)[THERE]) == whole.delays(100_000)[THERE]
