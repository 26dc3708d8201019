"""Parts of fleet.yaml that define service levels: weeks, objectives and burn rate alerts."""

from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from fleetgauge_core.fleet.burn_windows import BURN_WINDOWS, BurnWindow, PeriodDays
from fleetgauge_core.fleet.frozen_model import FrozenModel

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class Week(FrozenModel):
    """When a week starts: on a weekday at 00:00 in a time zone."""

    zone: str = Field(
        default="UTC",
        description="IANA time zone in which days and weeks start.",
        examples=["Europe/Berlin"],
    )
    start: Weekday = Field(
        default="monday", description="Weekday on which a week starts, at 00:00.", examples=["sunday"]
    )

    @field_validator("zone")
    @classmethod
    def _check_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"{zone!r} is not an IANA time zone such as Europe/Berlin") from error
        return zone


class Objective(FrozenModel):
    """The service level objectives of a tier, evaluated per week."""

    latency_p99_ms: float = Field(
        gt=0,
        description="Latency objective: 99% of the minutes have a p99 latency at or below this value.",
        examples=[50],
    )
    availability: float = Field(
        gt=0,
        lt=1,
        description="Availability objective: the share of all probes that must succeed.",
        examples=[0.9999],
    )


class BurnAlerts(FrozenModel):
    """Alerts on the burn rate of error budgets."""

    period_days: PeriodDays = Field(
        default=7,
        description="Budget period for which the alert windows are designed: 7 pages from burn rate 13.44 "
        "over 1h/5m, 30 from burn rate 14.4.",
        examples=[30],
    )

    @property
    def windows(self) -> tuple[BurnWindow, ...]:
        """The alert windows of the period, from the shortest to the longest."""
        return BURN_WINDOWS[self.period_days]


#: Objectives of the tiers that every fleet has.
BUILT_IN_OBJECTIVES = {
    "single-zone": Objective(latency_p99_ms=100, availability=0.9995),
    "multi-zone": Objective(latency_p99_ms=100, availability=0.9999),
}
