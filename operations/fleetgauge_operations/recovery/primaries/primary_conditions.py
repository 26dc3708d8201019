"""Services with every turn of `recover run`: who is primary, as conditions."""

from collections.abc import Callable
from datetime import datetime

from fleetgauge_core.fleet import Fleet
from fleetgauge_operations.recovery.primaries.lease_store_reader import findings_now
from fleetgauge_operations.recovery.primaries.plan.primary_lease import ClaimsError
from fleetgauge_operations.recovery.primaries.plan.primary_state import Finding
from fleetgauge_operations.recovery.readiness.plan.conditions import Condition, Kind, Whom


class ServicesEye:
    """Of a fleet; without a store of claims there is nothing to say."""

    def __init__(self, fleet: Fleet, clock: Callable[[], datetime]) -> None:
        self._fleet = fleet
        self._clock = clock
        self._last: tuple[Condition, ...] = ()

    def conditions(self, answering: frozenset[str]) -> tuple[Condition, ...]:
        """``answering``: the clusters that did at the last look.

        A store that cannot be read ends nothing: what it said last stands beside that.
        """
        try:
            found = findings_now(self._fleet, answering, self._clock())
        except ClaimsError as error:
            whom = Whom(Kind.PRIMARIES_UNREAD, "")
            return (*self._last, Condition(whom, "nobody knows who is primary", (str(error),)))
        self._last = tuple(map(_condition, found))
        return self._last


def _condition(one: Finding) -> Condition:
    return Condition(Whom(Kind(one.kind.value), "", subject=one.service), f"{one.service}: {one.words}")
