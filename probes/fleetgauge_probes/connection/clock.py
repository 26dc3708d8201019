"""Whether the cluster's clock and ours agree."""

from fleetgauge_core.kafka import Clock, Unknown
from fleetgauge_probes.connection.check import Check, check, not_known

#: Far more than clocks that are kept by NTP differ, far less than the minute that is measured.
_OFF_US = 1_000_000


def clock(seen: Clock | Unknown) -> Check:
    if isinstance(seen, Unknown):
        return not_known("clock", seen.reason)
    off_us = abs(seen.ahead_us)
    give_or_take = f"± {_text(seen.uncertainty_us)}"
    if off_us <= seen.uncertainty_us:
        return check("clock", [f"as this machine's, {give_or_take}"], ())
    found = f"{_text(off_us)} {'ahead of' if seen.ahead_us > 0 else 'behind'} this machine's, {give_or_take}"
    wrong = off_us - seen.uncertainty_us > _OFF_US
    return check("clock", [found], ["let NTP set both: compare `date -u` here and there"] if wrong else ())


def _text(us: int) -> str:
    return f"{us / 1e6:.1f} s" if us >= 1_000_000 else f"{us / 1000:.1f} ms"
