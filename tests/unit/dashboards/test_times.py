"""A reader's clock, also in the hours that it shows twice or never."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.figures.ticks import MOST, ticks
from fleetgauge_dashboards.links import LONGEST, Span
from fleetgauge_dashboards.times import Times, is_zone

BERLIN = Times("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_moment_is_told_in_the_zone() -> None:
    assert Times("UTC").instant(at("2026-03-02 10:00:01")) == "2026-03-02 10:00:01 UTC"
    assert BERLIN.instant(at("2026-07-02 22:30:00")) == "2026-07-03 00:30:00 CEST"
    assert BERLIN.named_minute(at("2026-03-02 10:05")) == "Mon 02 Mar 2026 11:05 CET"
    assert BERLIN.minute(at("2026-03-02 10:05")) == "2026-03-02 11:05"


def test_an_hour_that_comes_twice_says_which_one_it_is() -> None:
    before, first, second, after = (
        at(f"2026-10-24 {h}:30") + timedelta(hours=1) for h in ("22", "23", "23", "23")
    )
    first, second, after = at("2026-10-25 00:30"), at("2026-10-25 01:30"), at("2026-10-25 02:30")
    assert [BERLIN.clock(one) for one in (before, first, second, after)] == [
        "01:30",
        "02:30 CEST",
        "02:30 CET",
        "03:30",
    ]


@pytest.mark.parametrize(
    ("name", "known"), [("UTC", True), ("Europe/Berlin", True), ("../UTC", False), ("", False)]
)
def test_a_zone_is_one_of_the_known(name: str, known: bool) -> None:
    assert is_zone(name) is known


spans = st.builds(
    lambda start, minutes: Span(start, start + timedelta(minutes=minutes)),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)).map(  # noqa: DTZ001 (hypothesis draws them so)
        lambda one: one.replace(second=0, microsecond=0, tzinfo=UTC)
    ),
    st.integers(1, int(LONGEST.total_seconds()) // 60),
)


@given(spans, st.sampled_from(ZONES))
def test_ticks_ascend_inside_the_span_and_do_not_crowd(span: Span, zone: str) -> None:
    moments = [moment for moment, _ in ticks(span, Times(zone))]
    assert moments == sorted(set(moments))
    assert all(span.start <= moment <= span.end for moment in moments)
    # One more for each day that begins, and for a clock that goes back.
    assert len(moments) <= 2 * MOST


@given(spans, st.sampled_from(ZONES))
def test_each_tick_says_the_local_time_that_it_stands_at(span: Span, zone: str) -> None:
    times = Times(zone)
    for moment, words in ticks(span, times):
        assert words in (times.clock(moment), f"{times.local(moment):%a %d %b}")
        if words == f"{times.local(moment):%a %d %b}":
            before = times.local(moment - timedelta(minutes=15))
            assert before.date() != times.local(moment).date()


def test_a_week_has_its_days() -> None:
    span = Span(at("2026-10-19 22:00") - timedelta(days=1), at("2026-10-25 23:00"))
    assert [words for _, words in ticks(span, BERLIN)] == [
        "Mon 19 Oct",
        "Tue 20 Oct",
        "Wed 21 Oct",
        "Thu 22 Oct",
        "Fri 23 Oct",
        "Sat 24 Oct",
        "Sun 25 Oct",
        "Mon 26 Oct",
    ]


def test_the_night_in_which_clocks_go_back_has_its_hour_twice() -> None:
    span = Span(at("2026-10-24 22:00"), at("2026-10-25 04:00"))
    assert [words for _, words in ticks(span, BERLIN)] == [
        "Sun 25 Oct",
        "01:00",
        "02:00 CEST",
        "02:00 CET",
        "03:00",
        "04:00",
        "05:00",
    ]


def test_the_night_in_which_clocks_go_forth_skips_its_hour() -> None:
    span = Span(at("2026-03-28 23:00"), at("2026-03-29 04:00"))
    words = [words for _, words in ticks(span, BERLIN)]
    assert words == [
        "Sun 29 Mar",
        "00:30",
        "01:00",
        "01:30",
        "03:00",
        "03:30",
        "04:00",
        "04:30",
        "05:00",
        "05:30",
        "06:00",
    ]
