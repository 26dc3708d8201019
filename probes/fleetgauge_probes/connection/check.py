"""The result of one check of a cluster."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionCheck:
    """The result of the check named ``check``.

    ``ok`` is None if the fact could not be determined, which is not a failure. ``found`` describes what was
    found, ``mend`` what to do about it.
    """

    check: str
    ok: bool | None
    found: str
    mend: str | None = None


def build_check(name: str, facts: Iterable[str], remedies: Iterable[str]) -> ConnectionCheck:
    """Return a check that passes if there are no remedies; a remedy that occurs twice is given once."""
    remedy = "; ".join(dict.fromkeys(remedies))
    return ConnectionCheck(name, not remedy, "; ".join(facts), remedy or None)


def build_unknown_check(name: str, reason: str) -> ConnectionCheck:
    """Return a check whose fact could not be determined."""
    return ConnectionCheck(name, None, f"unknown: {reason}")
