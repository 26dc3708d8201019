"""Whether a leader-leg probe on a home broker is due, and how it counts if the home does not lead."""

from enum import Enum, auto


class LeaderEligibility(Enum):
    """State of a home broker with respect to its own probe partition."""

    LEADING = auto()
    """The probe is due; its acknowledgement counts only if the home still leads at that time."""
    EXCUSED = auto()
    """The probe is not due: leadership drifted or was moved on purpose, and the home is healthy."""
    UNHEALTHY = auto()
    """The probe fails at once as NOT_LEADING: the home is out of the ISR or does not respond."""


def assess_eligibility(leads: bool, in_sync: bool, responding: bool) -> LeaderEligibility:
    """Return a home broker's eligibility.

    ``leads`` comes from the producer's routing, ``in_sync`` from the ISR and ``responding`` from cold
    ApiVersions requests. Fencing needs no separate input: a fenced broker is never in an ISR that has
    another member, and where it is the last member it does not respond.
    """
    if leads:
        return LeaderEligibility.LEADING
    return LeaderEligibility.EXCUSED if in_sync and responding else LeaderEligibility.UNHEALTHY
