"""How often, and from when on, something may be done: data, each with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from fleetgauge_core.detection import HealthState
from fleetgauge_operations.mitigation.case import Action

#: As Cruise Control waits before it demotes, and before it removes; its rounds take five minutes each.
_FIVE_ROUNDS = timedelta(seconds=75)
_FIFTY_ROUNDS = timedelta(seconds=750)


def _warrants() -> Mapping[Action, Mapping[HealthState, timedelta]]:
    return {
        Action.DEMOTE: {
            # Shorter, and a switch that converges would cost every leader its place.
            HealthState.NETWORK_UNAVAILABLE: timedelta(seconds=30),
            HealthState.DEGRADED: _FIVE_ROUNDS,
        },
        Action.QUARANTINE_RESTART: {HealthState.DEGRADED: _FIVE_ROUNDS},
        # One that has died is up again by then, if somebody looks after it; one that hangs is not. A disk
        # that hangs has done so for 20 s when it is named.
        Action.RESTART: {
            HealthState.BROKER_DOWN: timedelta(minutes=2),
            HealthState.STORAGE_STALLED: timedelta(seconds=20),
        },
        Action.EVACUATE: {HealthState.DEGRADED: _FIFTY_ROUNDS},
    }


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each cluster."""

    warrants: Mapping[Action, Mapping[HealthState, timedelta]] = field(default_factory=_warrants)
    """What an action helps against, and for how long that must have been named. A broker that is down leads
    nothing any more."""
    pause: timedelta = timedelta(minutes=10)
    """Between two actions: what one did must be seen before the next is decided."""
    a_day: int = 3
    """Who needs more has something to look into that no action mends."""
    restarts: int = 2
    """Within ``restarts_in``: what two have not mended a third does not."""
    restarts_in: timedelta = timedelta(minutes=30)
    well_for: timedelta = timedelta(minutes=10)
    """What was done is undone by itself only after so long."""
    led_again_a_minute: int = 1_000
    """Partitions that a broker is given back: as many as Kafka's controller gives back in one go by itself
    (MAX_ELECTIONS_PER_IMBALANCE). Who leads anew has all their clients at once, and nothing in its caches."""


DEFAULT_LIMITS = Limits()
