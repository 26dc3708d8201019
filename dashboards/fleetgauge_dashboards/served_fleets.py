"""What is served: fleets, each with a lake, and who may do what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.weeks import WeekCalendar

AGENT_LATE_US = round(1000 * Fleet.model_fields["agent_late_ms"].default)


@dataclass(frozen=True, slots=True)
class ShownFleet:
    """A fleet that is served: its name, its lake (a folder or an object store's URI), its weeks' zone.

    A vantage that sent later than ``agent_late_us`` is left out of pooled samples, as in silver. ``segments``
    are each cluster's, as name and value; of a lake without a fleet file none are known. Nor are ``regions``,
    by cluster, ``mirrors``, as source and destination, ``pairs``, as active and passive, and ``ends``: when
    each cluster ends, None for one that goes on.
    """

    name: str
    lake: str
    week_zone: str = "UTC"
    week_start: str = "monday"
    simulated: bool = False
    agent_late_us: int = AGENT_LATE_US
    segments: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    regions: Mapping[str, str] = field(default_factory=dict)
    mirrors: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    ends: Mapping[str, datetime | None] = field(default_factory=dict)

    def is_awaited(self, now: datetime) -> bool:
        """Whether data should come: of a fleet that is measured, and not over."""
        return not self.simulated and len(self.over(now)) < len(self.ends)

    def over(self, now: datetime) -> frozenset[str]:
        """The clusters that have ended."""
        return frozenset(cluster for cluster, end in self.ends.items() if end is not None and end <= now)

    @property
    def calendar(self) -> WeekCalendar:
        return WeekCalendar(self.week_zone, self.week_start)
