"""How old the data is, and how much is missing."""

from datetime import timedelta

import pytest

from fleetgauge_dashboards.reader.recency import recency
from fleetgauge_dashboards.served_fleets import ShownFleet
from fleetgauge_dashboards.views.freshness import Age, Freshness, freshness
from tests.unit.dashboards.frames import minute, recent


def _row(cluster: str, at: int, expected: int = 3, measured: int = 3) -> dict[str, object]:
    return {
        "cluster_id": cluster,
        "minute": minute(at),
        "brokers_expected": expected,
        "brokers_measured": measured,
    }


def _fresh(rows: list[dict[str, object]], now: int) -> Freshness:
    table = recent(rows)
    return freshness(recency(table), minute(now))


def test_an_empty_lake_has_no_age() -> None:
    assert _fresh([], 0).state is Age.NONE


@pytest.mark.parametrize(
    ("now", "state"), [(13, Age.FRESH), (14, Age.STALE), (10 + 24 * 60, Age.STALE), (11 + 24 * 60, Age.ENDED)]
)
def test_age_counts_from_the_end_of_the_newest_minute(now: int, state: Age) -> None:
    fresh = _fresh([_row("a", 9)], now)
    assert fresh.until == minute(10)
    assert fresh.age == timedelta(minutes=now - 10)
    assert fresh.state is state


def test_a_minute_without_measurement_is_not_data() -> None:
    assert _fresh([_row("a", 5), _row("a", 9, measured=0)], 10).until == minute(6)


def test_a_cluster_that_fell_silent_is_named_and_still_expected() -> None:
    rows = [_row("a", m) for m in range(60)] + [_row("b", m) for m in range(50)]
    fresh = _fresh(rows, 60)
    assert (fresh.measured, fresh.expected) == (330, 360)
    assert fresh.silent == {"b": timedelta(minutes=10)}


def test_a_hole_in_the_rows_is_expected_too() -> None:
    fresh = _fresh([_row("a", m) for m in (0, 1, 4, 5)], 6)
    assert (fresh.measured, fresh.expected) == (12, 18)


def test_a_cluster_that_joined_is_expected_from_its_first_minute() -> None:
    rows = [_row("a", m) for m in range(60)] + [_row("b", m) for m in range(55, 60)]
    assert _fresh(rows, 60).coverage == 1


def test_a_cluster_silent_for_more_than_the_hour_is_expected_until_it_has_ended() -> None:
    rows = [_row("a", m) for m in range(200)] + [_row("b", m, expected=4) for m in range(20)]
    known = recency(recent(rows))
    waiting = freshness(known, minute(200))
    assert (waiting.measured, waiting.expected) == (180, 180 + 4 * 60)
    assert waiting.silence("b") == "3 h"
    ended = freshness(known, minute(200), over=frozenset({"b", "c"}))
    assert (ended.measured, ended.expected) == (180, 180)
    assert ended.silence("b") is ended.silence("c") is None
    assert ended.silence("d") == "more than a day"


def test_who_waits_for_data_does_not_call_it_history() -> None:
    known = recency(recent([_row("a", 9)]))
    assert freshness(known, minute(5000)).state is Age.ENDED
    waiting = freshness(known, minute(5000), awaited=True)
    assert (waiting.state, waiting.silence("a")) == (Age.STALE, "3 d 11 h")


def test_a_fleet_is_waited_for_until_its_last_cluster_has_ended() -> None:
    ends = {"a": None, "b": minute(5)}
    assert ShownFleet("f", "x", ends=ends).is_awaited(minute(10))
    assert ShownFleet("f", "x", ends=ends).over(minute(10)) == {"b"}
    assert not ShownFleet("f", "x", ends=ends, simulated=True).is_awaited(minute(10))
    assert not ShownFleet("f", "x", ends={"b": minute(5)}).is_awaited(minute(10))
    assert not ShownFleet("f", "x").is_awaited(minute(10))
