"""The lake that a command reads, and the week of it that its options select."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from fleetgauge_core.fleet import (
    BurnAlerts,
    Fleet,
    FleetFileError,
    Week,
    load_fleet,
)
from fleetgauge_core.runtime.cli import InputError

_AGENT_LATE_MS = Fleet.model_fields["agent_late_ms"].default


@dataclass(frozen=True, slots=True)
class LakeSource:
    """The lake that a command reads, and its fleet file, if any."""

    lake: str
    fleet: Fleet | None

    @property
    def week(self) -> Week:
        """The settings of the fleet's weeks, by default UTC from Monday."""
        return self.fleet.week if self.fleet else Week()

    @property
    def burn_alerts(self) -> BurnAlerts:
        """The windows of the burn rate alerts."""
        return self.fleet.burn_alerts if self.fleet else BurnAlerts()

    @property
    def agent_late_us(self) -> int:
        """The schedule lag in microseconds above which a vantage's samples are excluded."""
        return round(1000 * (self.fleet.agent_late_ms if self.fleet else _AGENT_LATE_MS))

    @property
    def name(self) -> str:
        """The fleet's name with a mark if it is simulated, or the lake's path without a fleet file."""
        if self.fleet is None:
            return self.lake
        return f"{self.fleet.name} (SIMULATED)" if self.fleet.simulated else self.fleet.name


def resolve_source(location: str | None, config: Path | None) -> LakeSource:
    """Return the lake and fleet file of the options --lake and --config.

    Raises: InputError when the fleet file cannot be read or is invalid.
    """
    if location is not None and config is None:
        return LakeSource(location, None)
    try:
        fleet = load_fleet(config or Path("fleet.yaml"))
    except FleetFileError as error:
        raise InputError(f"{error}, or name a lake with --lake" if config is None else str(error)) from error
    return LakeSource(location or fleet.lake, fleet)


def select_week(weeks: Sequence[date], day: datetime | None, where: str) -> date:
    """Return the week that contains a day, or the newest week without a day.

    Raises: InputError when there is no such week; ``where`` is named in its message.
    """
    if not weeks:
        raise no_week_error(where)
    if day is None:
        return max(weeks)
    for week in weeks:
        if week <= day.date() < week + timedelta(days=7):
            return week
    raise InputError(f"{where}: no week contains {day.date()}; the weeks are {min(weeks)} to {max(weeks)}")


def no_week_error(where: str) -> InputError:
    """Return the error for a lake in which no week has been computed."""
    return InputError(
        f"{where}: no week yet; the first is computed with the first batch of fleetgauge stream or backfill"
    )
