"""The age of the data, and its coverage."""

from datetime import timedelta

import pytest

from fleetgauge_dashboards.reader.recency import compute_recency
from fleetgauge_dashboards.served_fleets import ServedFleet
from fleetgauge_dashboards.views.freshness import DataAge, Freshness, assess_freshness
from tests.unit.dashboards.frames import minute, recent


def _row(cluster: str, at: int, expected: int = 3, measured: int = 3) -> dict[str, object]:
    return {
        "cluster_id": cluster,
        "minute": minute(at),
        "brokers_expected": expected,
        "brokers_measured": measured,
    }


def _assess(rows: list[dict[str, object]], now: int) -> Freshness:
    table = recent(rows)
    return assess_freshness(compute_recency(table), minute(now))


def test_an_empty_lake_has_no_age() -> None:
    assert _assess([], 0).state is DataAge.NONE


@pytest.mark.parametrize(
    ("now", "state"),
    [(13, DataAge.FRESH), (14, DataAge.STALE), (10 + 24 * 60, DataAge.STALE), (11 + 24 * 60, DataAge.ENDED)],
)
def test_age_counts_from_the_end_of_the_newest_minute(now: int, state: DataAge) -> None:
    fresh = _assess([_row("a", 9)], now)
    assert fresh.until == minute(10)
    assert fresh.age == timedelta(minutes=now - 10)
    assert fresh.state is state


def test_an_unmeasured_minute_does_not_count_as_data() -> None:
    assert _assess([_row("a", 5), _row("a", 9, measured=0)], 10).until == minute(6)


def test_a_silent_cluster_is_listed_and_still_expected() -> None:
    rows = [_row("a", m) for m in range(60)] + [_row("b", m) for m in range(50)]
    fresh = _assess(rows, 60)
    assert (fresh.measured, fresh.expected) == (330, 360)
    assert fresh.silent_for == {"b": timedelta(minutes=10)}


def test_missing_rows_count_as_expected() -> None:
    fresh = _assess([_row("a", m) for m in (0, 1, 4, 5)], 6)
    assert (fresh.measured, fresh.expected) == (12, 18)


def test_a_cluster_that_joined_is_expected_from_its_first_minute() -> None:
    rows = [_row("a", m) for m in range(60)] + [_row("b", m) for m in range(55, 60)]
    assert _assess(rows, 60).coverage == 1


def test_a_cluster_silent_for_over_an_hour_is_expected_until_it_has_ended() -> None:
    rows = [_row("a", m) for m in range(200)] + [_row("b", m, expected=4) for m in range(20)]
    recency = compute_recency(recent(rows))
    waiting = assess_freshness(recency, minute(200))
    assert (waiting.measured, waiting.expected) == (180, 180 + 4 * 60)
    assert waiting.describe_silence("b") == "3 h"
    ended = assess_freshness(recency, minute(200), ended=frozenset({"b", "c"}))
    assert (ended.measured, ended.expected) == (180, 180)
    assert ended.describe_silence("b") is ended.describe_silence("c") is None
    assert ended.describe_silence("d") == "more than a day"


def test_awaited_data_is_stale_and_never_ended() -> None:
    recency = compute_recency(recent([_row("a", 9)]))
    assert assess_freshness(recency, minute(5000)).state is DataAge.ENDED
    waiting = assess_freshness(recency, minute(5000), awaited=True)
    assert (waiting.state, waiting.describe_silence("a")) == (DataAge.STALE, "3 d 11 h")


def test_a_fleets_data_is_expecting_data_until_its_last_cluster_has_ended() -> None:
    ends = {"a": None, "b": minute(5)}
    assert ServedFleet("f", "x", ends=ends).is_expecting_data(minute(10))
    assert ServedFleet("f", "x", ends=ends).ended_clusters(minute(10)) == {"b"}
    assert not ServedFleet("f", "x", ends=ends, simulated=True).is_expecting_data(minute(10))
    assert not ServedFleet("f", "x", ends={"b": minute(5)}).is_expecting_data(minute(10))
    assert not ServedFleet("f", "x").is_expecting_data(minute(10))
