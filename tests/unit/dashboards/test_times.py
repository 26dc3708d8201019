"""Local times, also in the hours that clock changes repeat or skip."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_dashboards.figures.ticks import MAX_TICKS, compute_ticks
from fleetgauge_dashboards.links import MAX_SPAN, Span
from fleetgauge_dashboards.times import TimeFormat, is_time_zone

BERLIN = TimeFormat("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_an_instant_is_formatted_in_the_time_zone() -> None:
    assert TimeFormat("UTC").format_instant(at("2026-03-02 10:00:01")) == "2026-03-02 10:00:01 UTC"
    assert BERLIN.format_instant(at("2026-07-02 22:30:00")) == "2026-07-03 00:30:00 CEST"
    assert BERLIN.format_long_minute(at("2026-03-02 10:05")) == "Mon 02 Mar 2026 11:05 CET"
    assert BERLIN.format_minute(at("2026-03-02 10:05")) == "2026-03-02 11:05"


def test_an_ambiguous_hour_carries_its_zone_abbreviation() -> None:
    before, first, second, after = (
        at(f"2026-10-24 {h}:30") + timedelta(hours=1) for h in ("22", "23", "23", "23")
    )
    first, second, after = at("2026-10-25 00:30"), at("2026-10-25 01:30"), at("2026-10-25 02:30")
    assert [BERLIN.format_clock(instant) for instant in (before, first, second, after)] == [
        "01:30",
        "02:30 CEST",
        "02:30 CET",
        "03:30",
    ]


@pytest.mark.parametrize(
    ("name", "expected"), [("UTC", True), ("Europe/Berlin", True), ("../UTC", False), ("", False)]
)
def test_a_time_zone_is_in_the_iana_database(name: str, expected: bool) -> None:
    assert is_time_zone(name) is expected


spans = st.builds(
    lambda start, minutes: Span(start, start + timedelta(minutes=minutes)),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)).map(  # noqa: DTZ001 (hypothesis draws them so)
        lambda instant: instant.replace(second=0, microsecond=0, tzinfo=UTC)
    ),
    st.integers(1, int(MAX_SPAN.total_seconds()) // 60),
)


@given(spans, st.sampled_from(ZONES))
def test_ticks_ascend_within_the_range_and_do_not_crowd(span: Span, zone: str) -> None:
    moments = [moment for moment, _ in compute_ticks(span, TimeFormat(zone))]
    assert moments == sorted(set(moments))
    assert all(span.start <= moment <= span.end for moment in moments)
    # One more for each day that begins, and for a clock that goes back.
    assert len(moments) <= 2 * MAX_TICKS


@given(spans, st.sampled_from(ZONES))
def test_each_tick_is_labelled_with_its_local_time(span: Span, zone: str) -> None:
    times = TimeFormat(zone)
    for moment, label in compute_ticks(span, times):
        assert label in (times.format_clock(moment), f"{times.to_local(moment):%a %d %b}")
        if label == f"{times.to_local(moment):%a %d %b}":
            before = times.to_local(moment - timedelta(minutes=15))
            assert before.date() != times.to_local(moment).date()


def test_a_week_has_a_tick_per_day() -> None:
    span = Span(at("2026-10-19 22:00") - timedelta(days=1), at("2026-10-25 23:00"))
    assert [label for _, label in compute_ticks(span, BERLIN)] == [
        "Mon 19 Oct",
        "Tue 20 Oct",
        "Wed 21 Oct",
        "Thu 22 Oct",
        "Fri 23 Oct",
        "Sat 24 Oct",
        "Sun 25 Oct",
        "Mon 26 Oct",
    ]


def test_the_repeated_hour_has_two_ticks() -> None:
    span = Span(at("2026-10-24 22:00"), at("2026-10-25 04:00"))
    assert [label for _, label in compute_ticks(span, BERLIN)] == [
        "Sun 25 Oct",
        "01:00",
        "02:00 CEST",
        "02:00 CET",
        "03:00",
        "04:00",
        "05:00",
    ]


def test_the_skipped_hour_has_no_tick() -> None:
    span = Span(at("2026-03-28 23:00"), at("2026-03-29 04:00"))
    labels = [label for _, label in compute_ticks(span, BERLIN)]
    assert labels == [
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
