"""Check of the expiry of the brokers' TLS certificates."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from fleetgauge_core.kafka import AdvertisedBroker, EndpointResponse, QueryFailure
from fleetgauge_probes.connection.check import ConnectionCheck, build_check

#: Time to renew a certificate by hand; automatic renewal happens earlier.
_EXPIRES_SOON = timedelta(days=14)


def check_certificates(
    brokers: Mapping[int, AdvertisedBroker] | QueryFailure, now: datetime
) -> ConnectionCheck | None:
    """Return a check that fails for certificates that expire within 14 days; None if no broker has one."""
    if isinstance(brokers, QueryFailure):
        return None
    expiries = {
        broker_id: broker.probe_result.certificate_expires_at
        for broker_id, broker in sorted(brokers.items())
        if isinstance(broker.probe_result, EndpointResponse) and broker.probe_result.certificate_expires_at
    }
    if not expiries:
        return None
    return build_check(
        "certificates",
        [f"valid until {min(expiries.values()):%Y-%m-%d}"],
        [
            f"renew the certificate of broker {broker_id}: it expires on {expiry:%Y-%m-%d at %H:%M} UTC"
            for broker_id, expiry in expiries.items()
            if expiry - now < _EXPIRES_SOON
        ],
    )
