"""Corrections that would exclude nothing are told from those that would, by their times and by others."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.slo.correction_effect import CorrectableFleet, explain_missing_effect
from fleetgauge_core.slo.corrections import Correction, find_occurrences

TEN = datetime(2026, 3, 2, 10, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FLEET = CorrectableFleet(
    segments={
        "orders": frozenset({("region", "eu")}),
        "search": frozenset({("region", "eu")}),
        "payments": frozenset({("region", "us")}),
    },
    zone="Europe/Berlin",
    lifetimes={"payments": (TEN, TEN + DAY)},
)
ONCE = Correction("new", "cluster", TEN, TEN + HOUR, cluster_id="orders")
DAILY = replace(ONCE, recurs="daily")
EU = replace(ONCE, scope="segment", cluster_id=None, segment="region", segment_value="eu")


def explain(correction: Correction, *others: Correction) -> str:
    named = [replace(other, correction_id=f"old{number}") for number, other in enumerate(others)]
    return explain_missing_effect(correction, FLEET, named) or ""


@pytest.mark.parametrize(
    ("starts", "ends", "begins"),
    [
        ("10:00:00", "10:00:01", True),
        ("10:00:01", "10:00:59", False),
        ("10:00:01", "10:01:00", False),
        ("10:00:01", "10:01:01", True),
        ("10:00:00.000001", "10:01:00", False),
    ],
)
def test_a_correction_needs_a_minute_that_begins_within_it(starts: str, ends: str, begins: bool) -> None:
    lo, hi = (datetime.fromisoformat(f"2026-03-02T{time}+00:00") for time in (starts, ends))
    reason = explain(replace(ONCE, starts=lo, ends=hi))
    assert reason == ("" if begins else "no minute begins within the range")


def test_a_repetition_that_ends_before_it_begins_is_named() -> None:
    assert "would never begin" in explain(replace(DAILY, recurs_until=TEN))
    assert explain(replace(DAILY, recurs_until=TEN + HOUR)) == ""


@pytest.mark.parametrize(
    ("starts", "counts"),
    [(TEN - 2 * HOUR, False), (TEN - HOUR, False), (TEN, True), (TEN + DAY - HOUR, True), (TEN + DAY, False)],
)
def test_minutes_before_since_and_after_until_do_not_count(starts: datetime, counts: bool) -> None:
    reason = explain(replace(ONCE, cluster_id="payments", starts=starts, ends=starts + HOUR))
    assert reason == (
        "" if counts else "minutes of payments do not count then: see `since` and `until` in the fleet file"
    )


@pytest.mark.parametrize(
    ("new", "others", "ids"),
    [
        (ONCE, [ONCE], "old0"),
        (ONCE, [EU], "old0"),
        (ONCE, [replace(ONCE, ends=TEN + HOUR / 2), replace(ONCE, starts=TEN + HOUR / 2)], "old0, old1"),
        (ONCE, [replace(DAILY, starts=TEN - 9 * DAY, ends=TEN - 9 * DAY + HOUR)], "old0"),
        (replace(ONCE, broker_id=3), [ONCE], "old0"),
        (replace(ONCE, broker_id=3), [replace(ONCE, broker_id=3)], "old0"),
        (EU, [ONCE, replace(ONCE, cluster_id="search")], "old0, old1"),
        (DAILY, [DAILY], "old0"),
        (
            replace(DAILY, recurs_until=TEN + 800 * DAY),
            [replace(DAILY, recurs_until=TEN + 800 * DAY)],
            "old0",
        ),
        (replace(DAILY, recurs="weekly"), [DAILY], "old0"),
        (replace(DAILY, recurs_until=TEN + 9 * DAY), [replace(ONCE, ends=TEN + 99 * DAY)], "old0"),
    ],
)
def test_a_correction_of_minutes_that_are_excluded_already_names_the_others(
    new: Correction, others: Sequence[Correction], ids: str
) -> None:
    assert explain(new, *others) == f"these minutes are excluded already, by correction {ids}"


@pytest.mark.parametrize(
    ("new", "others"),
    [
        (ONCE, [replace(ONCE, cluster_id="search")]),
        (ONCE, [replace(ONCE, broker_id=3)]),
        (replace(ONCE, broker_id=3), [replace(ONCE, broker_id=4)]),
        (ONCE, [replace(ONCE, ends=TEN + HOUR - timedelta(minutes=1))]),
        (ONCE, [replace(ONCE, starts=TEN + timedelta(minutes=1))]),
        (EU, [ONCE]),
        (DAILY, [replace(DAILY, recurs="weekly")]),
        (DAILY, [replace(DAILY, recurs_until=TEN + 4_000 * DAY)]),
        (replace(DAILY, recurs_until=TEN + 1_700 * DAY), [replace(DAILY, recurs_until=TEN + 800 * DAY)]),
        # At the same time in UTC, but not by the clock of the fleet's zone after 29 March.
        (DAILY, [replace(ONCE, starts=TEN + n * DAY, ends=TEN + n * DAY + HOUR) for n in range(40)]),
    ],
)
def test_a_correction_that_excludes_another_minute_has_an_effect(
    new: Correction, others: Sequence[Correction]
) -> None:
    assert explain(new, *others) == ""


@given(
    new=st.tuples(st.integers(0, 200), st.integers(1, 90)),
    others=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 90)), max_size=5),
)
def test_it_has_no_effect_exactly_if_every_minute_is_excluded_already(
    new: tuple[int, int], others: list[tuple[int, int]]
) -> None:
    def correction(begin: int, seconds: int) -> Correction:
        # In units of half minutes, so that ranges begin within minutes as well.
        starts = TEN + timedelta(seconds=30 * begin)
        return replace(ONCE, starts=starts, ends=starts + timedelta(seconds=30 * seconds))

    def minutes(correction: Correction) -> set[int]:
        spans = find_occurrences(correction, "UTC", TEN - DAY, TEN + DAY)
        return {
            n for starts, ends in spans for n in range(200) if starts <= TEN + timedelta(minutes=n) < ends
        }

    excluded = set().union(*(minutes(correction(*other)) for other in others))
    has_effect = bool(minutes(correction(*new)) - excluded)
    assert (explain(correction(*new), *(correction(*other) for other in others)) == "") == has_effect
