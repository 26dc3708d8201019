"""Whether the leader leg's next probe on a home broker is due, and what it means if it is not."""

from enum import Enum


class Standing(Enum):
    """A home broker towards its own probe partition."""

    LEADS = "leads"
    """Due: send it, and believe an acknowledgement only if the home still leads then."""
    AWAY = "away"
    """Not due: leadership drifted or was taken on purpose, the home itself is well."""
    OUT = "out"
    """A failure at once (NOT_LEADING): the home is out of the ISR or does not answer."""


def standing(leads: bool, in_sync: bool, answering: bool) -> Standing:
    """Judge from what the producer routes to, the ISR and the cold ApiVersions answers.

    A fenced broker is never in an ISR that has another member, and does not
    answer where it is the last one, so fencing needs no sign of its own.
    """
    if leads:
        return Standing.LEADS
    return Standing.AWAY if in_sync and answering else Standing.OUT
