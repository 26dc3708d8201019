from datetime import UTC, datetime, timedelta

from fleetgauge_core.kafka import (
    Reply,
    Sight,
    Silence,
    Unknown,
)
from fleetgauge_probes.connection.certificates import certificates

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def sights(**days: float | None) -> dict[int, Sight]:
    """Brokers b1, b2 and so on, and in how many days their certificates end."""
    ends = {int(name[1:]): left for name, left in days.items()}
    return {
        broker: Sight("kafka:9093", None, Reply((4, 3), None if left is None else NOW + timedelta(left)))
        for broker, left in ends.items()
    }


def test_without_certificates_there_is_nothing_to_say() -> None:
    assert certificates(Unknown("late"), NOW) is None
    assert certificates(sights(b1=None), NOW) is None
    assert certificates({1: Sight("kafka:9093", None, Silence.MUTE)}, NOW) is None


def test_good_ones_are_told_by_the_day_that_the_first_of_them_ends() -> None:
    check = certificates(sights(b1=90, b2=14.5), NOW)
    assert check is not None
    assert (check.ok, check.found, check.mend) == (True, "good until 2026-06-15", None)


def test_one_that_ends_within_14_days_is_to_be_renewed() -> None:
    check = certificates(sights(b1=90, b3=13.5, b2=0.5), NOW)
    assert check is not None
    assert check.ok is False
    assert check.found == "good until 2026-06-01"
    assert check.mend == (
        "renew that of broker 2: it ends on 2026-06-01 at 12:00 UTC; "
        "renew that of broker 3: it ends on 2026-06-14 at 12:00 UTC"
    )
