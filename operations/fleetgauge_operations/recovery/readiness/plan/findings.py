"""Conditions that last are findings: told when they have, and when they are over."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fleetgauge_operations.recovery.readiness.plan.conditions import Condition, Kind, Whom

#: Judgements in a row: what is there once may be gone before anybody looks.
_OPENS_AFTER = 2
_CLOSES_AFTER = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """What began or ended, ``at``."""

    condition: Condition
    at: datetime
    opens: bool

    @property
    def fingerprint(self) -> str:
        """The same of all that is told of it, also by the next process."""
        return fingerprint(self.condition.whom)


@dataclass(frozen=True, slots=True)
class _Standing:
    condition: Condition
    told: bool
    there: int = 0
    gone: int = 0


class Findings:
    """All that stand. ``opened``: those that were told and had not ended when somebody looked last."""

    def __init__(self, opened: Iterable[Condition] = ()) -> None:
        self._standing = {one.whom: _Standing(one, told=True, there=_OPENS_AFTER) for one in opened}

    @property
    def opened(self) -> tuple[Condition, ...]:
        """Told, and not over."""
        return tuple(one.condition for one in self._standing.values() if one.told)

    def judge(self, conditions: Iterable[Condition], at: datetime) -> Sequence[Finding]:
        """All that hold now; what is to be told of it."""
        now = {one.whom: one for one in conditions}
        found = []
        for whom in {**self._standing, **now}:
            standing = self._standing.pop(whom, None)
            if whom in now:
                standing = _there(standing, now[whom])
            elif standing:
                standing = replace(standing, there=0, gone=standing.gone + 1)
            if standing and not standing.told and standing.there >= _opens_after(whom):
                standing = replace(standing, told=True)
                found.append(Finding(standing.condition, at, opens=True))
            if standing and standing.told and standing.gone >= _CLOSES_AFTER:
                found.append(Finding(standing.condition, at, opens=False))
            elif standing and (standing.told or whom in now):
                self._standing[whom] = standing
        return found


def _there(before: _Standing | None, now: Condition) -> _Standing:
    return _Standing(now, before.told, before.there + 1) if before else _Standing(now, told=False, there=1)


def _opens_after(whom: Whom) -> int:
    """One tracer that comes back is enough."""
    return 1 if whom.kind is Kind.MIRROR_LOOP else _OPENS_AFTER


def fingerprint(whom: Whom) -> str:
    return hashlib.sha256("/".join(["recover", *whom]).encode()).hexdigest()[:32]
