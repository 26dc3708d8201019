"""Numbers are formatted with their unit and never rounded to a better value."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.units import (
    format_duration,
    format_milliseconds,
    format_minutes,
    format_percent,
    format_seconds,
)


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (None, "–"),
        (0, "0.00 ms"),
        (3_417, "3.42 ms"),
        (43_100, "43.1 ms"),
        (231_499, "231 ms"),
        (10_000_000, "10,000 ms"),
    ],
)
def test_latencies_have_about_three_digits(us: float | None, text: str) -> None:
    assert format_milliseconds(us) == text


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.001, "0.1 s"),
        (0.4, "0.4 s"),
        (9.94, "10 s"),
        (59.2, "1 min"),
        (124.1, "2 min 5 s"),
    ],
)
def test_seconds_are_rounded_up(length: float | None, text: str) -> None:
    assert format_seconds(length) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "–"), (1.0, "100%"), (0.9995, "99.950%"), (0.999999999, "99.999%"), (0.0, "0.000%")],
)
def test_only_a_ratio_of_one_reads_100_percent(ratio: float | None, text: str) -> None:
    assert format_percent(ratio) == text


@given(st.floats(0, 1, exclude_max=True))
def test_a_percentage_never_exceeds_the_ratio(ratio: float) -> None:
    assert float(format_percent(ratio).rstrip("%")) / 100 <= ratio + 1e-11


def test_an_overspent_budget_has_a_minus_sign() -> None:
    assert (format_minutes(-1.36), format_minutes(100.8), format_minutes(1.008)) == (
        "−1.36 min",
        "100.8 min",
        "1.01 min",
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (42, "42 s"),
        (60, "1 min"),
        (250, "4 min 10 s"),
        (7500, "2 h 5 min"),
        (3600 * 76, "3 d 4 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text
