"""Minutes on a time grid: the worst of each step, and gaps."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.links import MAX_SPAN, Span
from fleetgauge_dashboards.views.minutes import MAX_STEPS, build_broker_timelines, build_timeline, make_grid
from tests.unit.dashboards.frames import START, broker_minutes, cluster_minutes, minute

HOUR = Span(START, minute(60))


def _minute(at: int, p99: int | None = 40_000, censored: int | None = None, **changed: Any) -> dict[str, Any]:
    return {
        "minute": minute(at),
        "latency_p99_us": p99,
        "latency_worst_home": 1,
        "latency_p99_censored_us": censored or p99,
        "availability_pooled": 1.0,
        "brokers_expected": 3,
        "brokers_measured": 3,
    } | changed


@given(st.integers(0, 10**9), st.integers(1, int(MAX_SPAN.total_seconds())))
def test_a_grid_covers_its_span_and_stays_drawable(offset_s: int, length_s: int) -> None:
    start = START + timedelta(seconds=offset_s)
    span = Span(start, start + timedelta(seconds=length_s))
    grid = make_grid(span)
    assert grid.start <= span.start < grid.start + grid.step
    assert grid.end - grid.step < span.end <= grid.end
    assert grid.size <= MAX_STEPS + 2
    assert grid.step_index(span.start) == 0


def test_a_missing_or_unmeasured_minute_is_a_gap() -> None:
    rows = [_minute(m) for m in range(60) if m not in (10, 11, 30)] + [_minute(30, None, brokers_measured=0)]
    line = build_timeline(cluster_minutes(rows), HOUR, 100_000)
    assert line.gaps == (Span(minute(10), minute(12)), Span(minute(30), minute(31)))


def test_minutes_before_the_first_row_are_not_a_gap() -> None:
    line = build_timeline(cluster_minutes([_minute(m) for m in range(20, 50)]), HOUR, 100_000)
    assert line.gaps == (Span(minute(50), minute(60)),)
    rows = [{"broker_id": 1, "minute": minute(m), "measured": m != 30} for m in range(20, 60)]
    (broker,) = build_broker_timelines(broker_minutes(rows), HOUR).brokers
    assert broker.gaps == (Span(minute(30), minute(31)),)
    assert build_timeline(cluster_minutes([]), HOUR, 100_000).gaps == (HOUR,)


def test_an_outage_without_a_success_is_a_bad_minute() -> None:
    line = build_timeline(cluster_minutes([_minute(0, None, 10_000_000)]), HOUR, 100_000)
    first = line.minutes[0]
    assert first is not None
    assert (first.latency_p99_ms, first.latency_p99_censored_ms) == (None, 10_000.0)
    assert line.bad_minutes == 1


def test_a_minute_exactly_at_the_objective_is_good() -> None:
    assert build_timeline(cluster_minutes([_minute(0, 100_000)]), HOUR, 100_000).bad_minutes == 0


def test_a_step_shows_its_worst_minute_and_counts_its_bad_minutes() -> None:
    day = Span(START, minute(24 * 60))
    rows = [
        _minute(0, 40_000),
        _minute(1, 130_000, latency_worst_home=3),
        _minute(2, availability_pooled=0.9),
    ]
    line = build_timeline(cluster_minutes(rows), day, 100_000)
    first = line.minutes[0]
    assert line.grid.step_min == 5
    assert first is not None
    assert (first.latency_p99_ms, first.worst_home, first.availability_pooled, first.bad_minutes) == (
        130.0,
        3,
        0.9,
        1,
    )
    assert line.minutes[1] is None


def test_each_broker_has_its_own_values_and_gaps() -> None:
    rows = [
        {
            "broker_id": 2,
            "minute": minute(0),
            "measured": True,
            "latency_p99_us": 3_000,
            "latency_p99_censored_us": 3_000,
        },
        {
            "broker_id": 1,
            "minute": minute(0),
            "measured": True,
            "latency_p99_us": None,
            "latency_p99_censored_us": 5_000_000,
        },
        {"broker_id": 1, "minute": minute(1), "measured": False},
    ]
    both = build_broker_timelines(broker_minutes(rows), Span(START, minute(2)))
    first, second = both.brokers
    assert (first.broker_id, first.latency_p99_ms, first.latency_p99_censored_ms) == (
        1,
        (None, None),
        (5_000.0, None),
    )
    assert first.gaps == (Span(minute(1), minute(2)),)
    assert second.latency_p99_ms == (3.0, None)


def test_without_rows_there_are_no_brokers() -> None:
    assert build_broker_timelines(broker_minutes([]), HOUR).brokers == ()


def test_the_worst_broker_of_an_outage_is_the_one_whose_probes_failed() -> None:
    outage = _minute(0, 48_000, 10_000_000, latency_worst_home=5, availability=0.0, availability_worst_home=4)
    line = build_timeline(cluster_minutes([outage, _minute(1)]), HOUR, 100_000)
    assert line.worst_homes == {1: (1,), 4: (0,)}


def test_unmeasured_time_is_exact_to_the_minute_at_any_step_size() -> None:
    week = Span(START, minute(7 * 24 * 60))
    rows = [_minute(m) for m in range(7 * 24 * 60) if not 1000 <= m < 1020]
    line = build_timeline(cluster_minutes(rows), week, 100_000)
    assert line.grid.step_min == 30
    assert line.gaps == (Span(minute(1000), minute(1020)),)
    assert line.unmeasured == timedelta(minutes=20)
    assert None not in line.minutes


def test_too_many_gaps_are_drawn_as_the_steps_that_contain_them() -> None:
    day = Span(START, minute(24 * 60))
    line = build_timeline(cluster_minutes([_minute(m) for m in range(0, 24 * 60, 2)]), day, 100_000)
    assert line.gaps == (day,)
    assert line.unmeasured == timedelta(hours=12)


def test_expired_minutes_are_not_gaps() -> None:
    expired = build_timeline(cluster_minutes([]), HOUR, 100_000, minute(600))
    assert (expired.gaps, expired.minutes_held, expired.held_since) == ((), 0, minute(600))
    partly_expired = build_timeline(cluster_minutes([]), HOUR, 100_000, minute(20))
    assert partly_expired.gaps == (Span(minute(20), minute(60)),)
    assert build_timeline(cluster_minutes([]), HOUR, 100_000, START).held_since is None


def test_without_broker_minutes_there_is_no_skew() -> None:
    assert build_broker_timelines(broker_minutes([]), HOUR).skew == (None,) * 60
