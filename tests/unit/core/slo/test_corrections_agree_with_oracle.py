"""Occurrences of corrections: product and oracle agree, also around clock changes of unusual zones."""

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from fleetgauge_core.slo.corrections import Correction, find_occurrences
from tests.oracle.clock_changes import CLOCK_CHANGE_WEEKS, ClockChangeWeek
from tests.oracle.correction_rules import find_occurrences as oracle_occurrences
from tests.oracle.oracle import ClusterSettings, Settings

MINUTE = timedelta(minutes=1)
UNSET_COLUMNS = {"segment": None, "segment_value": None, "broker_id": None, "withdrawn_at": None}
DAY = 24 * 60
HAVANA = next(setting for setting in CLOCK_CHANGE_WEEKS if setting.zone == "America/Havana")


@given(
    setting=st.sampled_from(CLOCK_CHANGE_WEEKS),
    starts_after=st.integers(-3 * DAY, 3 * DAY),
    lasts=st.sampled_from([1, 60, 200, 1500]),
    recurs=st.sampled_from([None, "daily", "weekly"]),
    until_after_days=st.none() | st.integers(1, 30),
    from_after=st.integers(-DAY, 20 * DAY),
    span=st.sampled_from([5, DAY, 7 * DAY]),
)
# The correction starts in the second of two hours with the same local time.
@example(HAVANA, 30, 10, "daily", None, -60, DAY)
def test_occurrences_agree_with_the_oracle(
    setting: ClockChangeWeek,
    starts_after: int,
    lasts: int,
    recurs: str | None,
    until_after_days: int | None,
    from_after: int,
    span: int,
) -> None:
    starts = setting.changes_at + starts_after * MINUTE
    until = starts + timedelta(days=until_after_days) if recurs and until_after_days else None
    correction = Correction(
        "c", "cluster", starts, starts + lasts * MINUTE, "orders", recurs=recurs, recurs_until=until
    )
    lo = starts + from_after * MINUTE
    hi = lo + span * MINUTE

    occurrences = [
        (starts, ends) for starts, ends in find_occurrences(correction, setting.zone, lo, hi) if starts < ends
    ]

    assert occurrences == _find_oracle_occurrences(correction, setting.zone, lo, hi)


def _find_oracle_occurrences(
    correction: Correction, zone: str, lo: datetime, hi: datetime
) -> list[tuple[datetime, datetime]]:
    names = ("correction_id", "scope", "cluster_id", "starts", "ends", "recurs", "recurs_until")
    row = UNSET_COLUMNS | {name: getattr(correction, name) for name in names}
    minutes = [lo.astimezone(UTC), hi - MINUTE]  # the last minute that starts before hi
    occurrences = oracle_occurrences([row], ClusterSettings("orders"), Settings((), week_zone=zone), minutes)
    return [(times.starts, times.ends) for times in occurrences if times.starts < times.ends]
