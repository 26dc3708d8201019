from datetime import UTC, datetime, timedelta

from fleetgauge_core.kafka import AdvertisedBroker, ConnectionFailure, EndpointResponse, QueryFailure
from fleetgauge_probes.connection.certificates import check_certificates

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def brokers(days_by_id: dict[int, float | None]) -> dict[int, AdvertisedBroker]:
    """Return brokers whose certificates expire in so many days; None is a broker without TLS."""
    return {
        broker_id: AdvertisedBroker(
            "kafka:9093", None, EndpointResponse((4, 3), None if days is None else NOW + timedelta(days))
        )
        for broker_id, days in days_by_id.items()
    }


def test_without_certificates_there_is_no_check() -> None:
    assert check_certificates(QueryFailure("late"), NOW) is None
    assert check_certificates(brokers({1: None}), NOW) is None
    failed = AdvertisedBroker("kafka:9093", None, ConnectionFailure.NO_RESPONSE)
    assert check_certificates({1: failed}, NOW) is None


def test_valid_certificates_are_reported_with_the_earliest_expiry() -> None:
    check = check_certificates(brokers({1: 90, 2: 14.5}), NOW)
    assert check is not None
    assert (check.ok, check.found, check.mend) == (True, "valid until 2026-06-15", None)


def test_a_certificate_that_expires_within_14_days_fails_the_check() -> None:
    check = check_certificates(brokers({1: 90, 3: 13.5, 2: 0.5}), NOW)
    assert check is not None
    assert check.ok is False
    assert check.found == "valid until 2026-06-01"
    assert check.mend == (
        "renew the certificate of broker 2: it expires on 2026-06-01 at 12:00 UTC; "
        "renew the certificate of broker 3: it expires on 2026-06-14 at 12:00 UTC"
    )
