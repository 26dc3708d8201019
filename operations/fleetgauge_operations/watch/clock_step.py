"""Whether a step of this machine's clock is right: the pulses that arrive tell the time of other machines."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.runtime.steady_clock import SteadyClock

#: Pulses in a row: one agent with a wrong clock, or a few old pulses, decide nothing.
_CONFIRMED_BY = 10
_TOLERANCE = timedelta(seconds=10)


@dataclass(slots=True)
class ClockStep:
    """Adopts the step of a clock once pulses agree with the machine's clock and not with the steady one.

    A clock that is set wrong while the watch runs is not followed. One that was wrong when the watch began,
    and is set right, is followed as soon as the agents' pulses say so.
    """

    clock: SteadyClock
    confirmations: int = 0

    def follow(self, emitted_at: datetime) -> bool:
        """Take when a pulse was emitted that arrived now; return whether the step has been adopted for it."""
        step = self.clock.step
        behind = self.clock.now() - emitted_at
        agrees_with_machine = abs(behind + step) <= _TOLERANCE < abs(behind)
        self.confirmations = self.confirmations + 1 if step and agrees_with_machine else 0
        if self.confirmations < _CONFIRMED_BY:
            return False
        self.confirmations = 0
        self.clock.adopt_step()
        return True
