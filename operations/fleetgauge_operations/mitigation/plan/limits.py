"""Limits of mitigation: which alerts warrant an action, after how long, and how often, each with a reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from fleetgauge_core.detection import HealthState
from fleetgauge_core.tables import MITIGATION_KINDS, ActionKind
from fleetgauge_operations.actions.plan.rules import ActionLimits, RateLimit

#: Cruise Control demotes a slow broker after 5 rounds and removes it after 50. Its rounds take five minutes,
#: those of `mitigate run` 15 s.
_FIVE_ROUNDS = timedelta(seconds=75)
_FIFTY_ROUNDS = timedelta(seconds=750)
_RESTART_KINDS = frozenset({ActionKind.RESTART, ActionKind.QUARANTINE_RESTART})


def _default_warrants() -> Mapping[ActionKind, Mapping[HealthState, timedelta]]:
    return {
        ActionKind.DEMOTE: {
            # If it were shorter, the convergence of a network switch would move every leader.
            HealthState.NETWORK_UNAVAILABLE: timedelta(seconds=30),
            HealthState.DEGRADED: _FIVE_ROUNDS,
        },
        ActionKind.QUARANTINE_RESTART: {HealthState.DEGRADED: _FIVE_ROUNDS},
        # A supervisor has restarted a crashed broker by then; a hung broker remains down. Storage has
        # stalled for 20 s already when the alert opens.
        ActionKind.RESTART: {
            HealthState.BROKER_DOWN: timedelta(minutes=2),
            HealthState.STORAGE_STALLED: timedelta(seconds=20),
        },
        ActionKind.EVACUATE: {HealthState.DEGRADED: _FIFTY_ROUNDS},
    }


@dataclass(frozen=True, slots=True)
class MitigationLimits:
    """Limits of mitigation in each cluster; actions of other kinds have their own."""

    warrants: Mapping[ActionKind, Mapping[HealthState, timedelta]] = field(default_factory=_default_warrants)
    """By action, the alert states that warrant it and the minimum age of each. BROKER_DOWN does not warrant a
    demotion, because such a broker leads nothing any more."""
    min_interval: timedelta = timedelta(minutes=10)
    """Between two actions, so that the effect of one is visible before the next is decided."""
    max_per_day: int = 3
    """More actions in a day indicate a cause that no action removes."""
    max_restarts: int = 2
    """Within ``restart_window``; what two restarts have not repaired, a third one does not."""
    restart_window: timedelta = timedelta(minutes=30)
    undo_after: timedelta = timedelta(minutes=10)
    """Minimum time without an alert before the controller undoes an action."""
    max_led_per_minute: int = 1_000
    """Partitions whose leadership is returned to a broker per minute, as many as Kafka's controller returns
    in one batch (MAX_ELECTIONS_PER_IMBALANCE): a new leader gets all clients at once, with cold caches."""

    def of_kind(self, kind: ActionKind) -> ActionLimits:
        """Return the limits of one kind of mitigation."""
        all_kinds = frozenset(MITIGATION_KINDS)
        rate_limits = [RateLimit(all_kinds, self.max_per_day, timedelta(days=1))]
        if kind in _RESTART_KINDS:
            rate_limits.append(RateLimit(_RESTART_KINDS, self.max_restarts, self.restart_window, "restarts"))
        return ActionLimits(self.warrants[kind], all_kinds, self.min_interval, tuple(rate_limits))


DEFAULT_LIMITS = MitigationLimits()
