"""When a correction holds, as the pipeline and as the oracle sees it, around odd moments of odd zones."""

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from fleetgauge_core.slo.corrections import Correction, occurrences
from tests.oracle.correction_rules import occurrences as oracle_occurrences
from tests.oracle.oracle import ClusterSettings, Settings
from tests.oracle.scenes import SETTINGS, Setting

MINUTE = timedelta(minutes=1)
NOTHING_SAID = {"segment": None, "segment_value": None, "broker_id": None, "withdrawn_at": None}
DAY = 24 * 60
HAVANA = next(one for one in SETTINGS if one.zone == "America/Havana")


@given(
    setting=st.sampled_from(SETTINGS),
    starts_after=st.integers(-3 * DAY, 3 * DAY),
    lasts=st.sampled_from([1, 60, 200, 1500]),
    recurs=st.sampled_from([None, "daily", "weekly"]),
    until_after_days=st.none() | st.integers(1, 30),
    from_after=st.integers(-DAY, 20 * DAY),
    span=st.sampled_from([5, DAY, 7 * DAY]),
)
# It starts in the second of two hours that the clock calls the same.
@example(HAVANA, 30, 10, "daily", None, -60, DAY)
def test_a_corrections_times_are_the_oracles(
    setting: Setting,
    starts_after: int,
    lasts: int,
    recurs: str | None,
    until_after_days: int | None,
    from_after: int,
    span: int,
) -> None:
    starts = setting.odd_moment + starts_after * MINUTE
    until = starts + timedelta(days=until_after_days) if recurs and until_after_days else None
    one = Correction(
        "c", "cluster", starts, starts + lasts * MINUTE, "orders", recurs=recurs, recurs_until=until
    )
    lo = starts + from_after * MINUTE
    hi = lo + span * MINUTE

    found = [times for times in occurrences(one, setting.zone, lo, hi) if times[0] < times[1]]

    assert found == _of_the_oracle(one, setting.zone, lo, hi)


def _of_the_oracle(one: Correction, zone: str, lo: datetime, hi: datetime) -> list[tuple[datetime, datetime]]:
    row = NOTHING_SAID | {name: getattr(one, name) for name in ("correction_id", "scope", "cluster_id")}
    row |= {name: getattr(one, name) for name in ("starts", "ends", "recurs", "recurs_until")}
    minutes = [lo.astimezone(UTC), hi - MINUTE]  # the last one that starts before hi
    found = oracle_occurrences([row], ClusterSettings("orders"), Settings((), week_zone=zone), minutes)
    return [(times.starts, times.ends) for times in found if times.starts < times.ends]
