import pytest

from fleetgauge_core.kafka import Clock, Unknown
from fleetgauge_probes.connection.clock import clock


def test_a_difference_within_the_uncertainty_is_none() -> None:
    check = clock(Clock(ahead_us=-2_000, uncertainty_us=2_500))
    assert (check.ok, check.found) == (True, "as this machine's, ± 2.5 ms")


@pytest.mark.parametrize(
    ("ahead_us", "found"),
    [
        (40_000, "40.0 ms ahead of this machine's, ± 1.5 ms"),
        (-40_000, "40.0 ms behind this machine's, ± 1.5 ms"),
    ],
)
def test_a_small_difference_is_told_with_its_direction(ahead_us: int, found: str) -> None:
    check = clock(Clock(ahead_us, uncertainty_us=1_500))
    assert (check.ok, check.found, check.mend) == (True, found, None)


@pytest.mark.parametrize("ahead_us", [3_600_000_000, 1_002_000, -1_002_000])
def test_a_clock_that_is_certainly_more_than_a_second_off_is_a_finding(ahead_us: int) -> None:
    check = clock(Clock(ahead_us, uncertainty_us=1_000))
    assert check.ok is False
    assert "NTP" in (check.mend or "")


def test_a_slow_answer_accuses_no_clock() -> None:
    assert clock(Clock(ahead_us=1_500_000, uncertainty_us=900_000)).ok


def test_a_clock_that_is_not_told_is_no_fault() -> None:
    check = clock(Unknown("its controller keeps it to itself"))
    assert (check.ok, check.found) == (None, "not known: its controller keeps it to itself")
