"""Until when the brokers' certificates are good."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from fleetgauge_core.kafka import Reply, Sight, Unknown
from fleetgauge_probes.connection.check import Check, check

#: Time to renew one by hand; what renews them by itself does so earlier.
_SOON = timedelta(days=14)


def certificates(sights: Mapping[int, Sight] | Unknown, now: datetime) -> Check | None:
    """None where no broker has shown one."""
    if isinstance(sights, Unknown):
        return None
    replies = {broker: sight.knock for broker, sight in sights.items() if isinstance(sight.knock, Reply)}
    ends = {broker: reply.certificate_ends for broker, reply in replies.items() if reply.certificate_ends}
    if not ends:
        return None
    soon = {broker: end for broker, end in sorted(ends.items()) if end - now < _SOON}
    return check(
        "certificates",
        [f"good until {min(ends.values()):%Y-%m-%d}"],
        [
            f"renew that of broker {broker}: it ends on {end:%Y-%m-%d at %H:%M} UTC"
            for broker, end in soon.items()
        ],
    )
