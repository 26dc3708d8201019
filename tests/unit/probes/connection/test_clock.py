import pytest

from fleetgauge_core.kafka import ClockOffset, QueryFailure
from fleetgauge_probes.connection.clock import check_clock


def test_an_offset_within_the_uncertainty_is_reported_as_equal() -> None:
    check = check_clock(ClockOffset(ahead_us=-2_000, uncertainty_us=2_500))
    assert (check.ok, check.found) == (True, "equal to this machine's, ± 2.5 ms")


@pytest.mark.parametrize(
    ("ahead_us", "message"),
    [
        (40_000, "40.0 ms ahead of this machine's, ± 1.5 ms"),
        (-40_000, "40.0 ms behind this machine's, ± 1.5 ms"),
    ],
)
def test_a_small_offset_is_reported_with_its_direction(ahead_us: int, message: str) -> None:
    check = check_clock(ClockOffset(ahead_us, uncertainty_us=1_500))
    assert (check.ok, check.found, check.mend) == (True, message, None)


@pytest.mark.parametrize("ahead_us", [3_600_000_000, 1_002_000, -1_002_000])
def test_an_offset_of_certainly_more_than_a_second_fails_the_check(ahead_us: int) -> None:
    check = check_clock(ClockOffset(ahead_us, uncertainty_us=1_000))
    assert check.ok is False
    assert "NTP" in (check.mend or "")


def test_an_offset_that_a_slow_response_may_explain_passes_the_check() -> None:
    assert check_clock(ClockOffset(ahead_us=1_500_000, uncertainty_us=900_000)).ok


def test_an_unknown_offset_is_not_a_failure() -> None:
    check = check_clock(QueryFailure("its controller does not report its time"))
    assert (check.ok, check.found) == (None, "unknown: its controller does not report its time")
