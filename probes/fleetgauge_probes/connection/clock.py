"""Check of the difference between the cluster's clock and this machine's."""

from fleetgauge_core.kafka import ClockOffset, QueryFailure
from fleetgauge_probes.connection.check import ConnectionCheck, build_check, build_unknown_check

#: Far more than clocks synchronized by NTP differ, far less than the minute that is measured.
_MAX_OFFSET_US = 1_000_000


def check_clock(clock_offset: ClockOffset | QueryFailure) -> ConnectionCheck:
    """Return a check that fails if the clocks certainly differ by more than a second."""
    if isinstance(clock_offset, QueryFailure):
        return build_unknown_check("clock", clock_offset.reason)
    offset_us = abs(clock_offset.ahead_us)
    uncertainty = f"± {_format_duration(clock_offset.uncertainty_us)}"
    if offset_us <= clock_offset.uncertainty_us:
        return build_check("clock", [f"equal to this machine's, {uncertainty}"], ())
    direction = "ahead of" if clock_offset.ahead_us > 0 else "behind"
    fact = f"{_format_duration(offset_us)} {direction} this machine's, {uncertainty}"
    is_off = offset_us - clock_offset.uncertainty_us > _MAX_OFFSET_US
    remedies = ["synchronize both clocks by NTP: compare `date -u` on both machines"] if is_off else ()
    return build_check("clock", [fact], remedies)


def _format_duration(us: int) -> str:
    return f"{us / 1e6:.1f} s" if us >= 1_000_000 else f"{us / 1000:.1f} ms"
