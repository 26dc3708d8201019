"""Findings on primaries as readiness conditions, for `recover run`."""

from collections.abc import Callable
from datetime import datetime

from fleetgauge_core.fleet import Fleet
from fleetgauge_operations.recovery.primaries.lease_store_reader import read_primary_findings
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLeaseError
from fleetgauge_operations.recovery.primaries.plan.primary_state import PrimaryFinding
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    ConditionKey,
    ConditionKind,
    ReadinessCondition,
)


class PrimaryMonitor:
    """Checks the primaries of a fleet's services; there are no conditions without a lease store."""

    def __init__(self, fleet: Fleet, clock: Callable[[], datetime]) -> None:
        self._fleet = fleet
        self._clock = clock
        self._last: tuple[ReadinessCondition, ...] = ()

    def check(self, reachable: frozenset[str]) -> tuple[ReadinessCondition, ...]:
        """Return the conditions now, given the clusters that answered the last inspection.

        If the store cannot be read, the previous conditions remain, and PRIMARIES_UNREAD is added.
        """
        try:
            findings = read_primary_findings(self._fleet, reachable, self._clock())
        except PrimaryLeaseError as error:
            key = ConditionKey(ConditionKind.PRIMARIES_UNREAD, "")
            unread = ReadinessCondition(key, "the store of primary leases cannot be read", (str(error),))
            return (*self._last, unread)
        self._last = tuple(map(_to_condition, findings))
        return self._last


def _to_condition(finding: PrimaryFinding) -> ReadinessCondition:
    key = ConditionKey(ConditionKind(finding.kind.value), "", subject=finding.service)
    return ReadinessCondition(key, f"{finding.service}: {finding.message}")
