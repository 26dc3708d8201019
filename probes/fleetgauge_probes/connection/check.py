"""What a check says."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``ok`` is None where it could not be known, which is no fault."""

    check: str
    ok: bool | None
    found: str
    mend: str | None = None


def check(name: str, told: Iterable[str], mends: Iterable[str]) -> Check:
    """Well unless there is something to mend; the same advice is given once."""
    mend = "; ".join(dict.fromkeys(mends))
    return Check(name, not mend, "; ".join(told), mend or None)


def not_known(name: str, reason: str) -> Check:
    return Check(name, None, f"not known: {reason}")
