"""A fleet that the dashboards serve: its lake and what its fleet file says of its clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.weeks import WeekCalendar

AGENT_LATE_US = round(1000 * Fleet.model_fields["agent_late_ms"].default)


@dataclass(frozen=True, slots=True)
class ServedFleet:
    """A fleet that is served: its name, its lake (a folder or an object store's URI) and its clusters.

    ``page_url`` is the address of the pages in notifications.
    A vantage whose schedule lag exceeds ``agent_late_us`` is left out of pooled samples, as in silver.
    The remaining fields are keyed by cluster id or name clusters, and are empty for a lake without a fleet
    file: ``segments`` (name, value), ``regions``, ``mirrors`` (source, destination), ``pairs`` (active,
    passive) and ``ends`` (the cluster's ``until``, None if it is not set).
    """

    name: str
    lake: str
    week_zone: str = "UTC"
    week_start: str = "monday"
    simulated: bool = False
    page_url: str | None = None
    agent_late_us: int = AGENT_LATE_US
    segments: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    regions: Mapping[str, str] = field(default_factory=dict)
    mirrors: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    ends: Mapping[str, datetime | None] = field(default_factory=dict)

    def is_expecting_data(self, now: datetime) -> bool:
        """Return whether new data is due: the fleet is not simulated, and a cluster has not ended."""
        return not self.simulated and len(self.ended_clusters(now)) < len(self.ends)

    def ended_clusters(self, now: datetime) -> frozenset[str]:
        """Return the ids of the clusters whose ``until`` has passed."""
        return frozenset(cluster for cluster, end in self.ends.items() if end is not None and end <= now)

    @property
    def calendar(self) -> WeekCalendar:
        """The calendar of the fleet's weeks."""
        return WeekCalendar(self.week_zone, self.week_start)
