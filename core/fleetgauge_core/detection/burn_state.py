"""The state of the fold over probe minutes: a cluster's minutes, its open burn alerts and its exclusions."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from fleetgauge_core.detection.finding import FindingSubject, HealthCondition, HealthState
from fleetgauge_core.fleet.burn_windows import BurnWindow
from fleetgauge_core.slo.burn import BurnHistory, BurnMinute

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class BurnSettings:
    """A cluster's objectives and burn windows; records with a lag over ``agent_late_us`` do not count."""

    latency_objective_us: int
    availability_objective: float
    windows: Sequence[BurnWindow]
    agent_late_us: int
    retired_brokers: frozenset[int] = frozenset()


#: Returns the brokers under planned maintenance in a minute; None among them stands for the whole cluster.
#: Their broker-minutes are neither measured nor expected, as with corrections.
MaintenanceLookup = Callable[[datetime], Set[int | None]]


class BrokerMinuteRecord(NamedTuple):
    """What a record adds to its broker-minute; no attempts if its agent was late."""

    broker_id: int
    attempted: int
    success_us: tuple[int, ...]


class OpenMinute(NamedTuple):
    """A minute that is not closed: its records by (run id, sequence), and the brokers expected in it."""

    records: Mapping[tuple[str, int], BrokerMinuteRecord] = MappingProxyType({})
    expected_brokers: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterBurnState:
    """One cluster's closed minutes, and its burn conditions with an open alert."""

    minutes: tuple[BurnMinute, ...] = ()
    """The closed minutes, ascending, as far back as the longest burn window."""
    burning: frozenset[HealthCondition] = frozenset()
    open_minutes: Mapping[datetime, OpenMinute] = field(default_factory=dict)
    expected_brokers: frozenset[int] = frozenset()
    """The brokers expected in the last minute with a record."""
    excluding_alerts: Mapping[FindingSubject, datetime] = field(default_factory=dict)
    """The open alerts whose errors are excluded, with the start of the exclusion."""
    excluded_periods: tuple[tuple[datetime, datetime], ...] = ()
    """Start and end of the exclusions of cleared alerts."""
    history: BurnHistory | None = field(default=None, compare=False, repr=False)
    """Prefix sums of the minutes; None if exclusions changed since it was built."""

    def is_excluded(self, minute: datetime) -> bool:
        """Return whether the errors of the minute are excluded because an alert has already paged."""
        end = minute + _MINUTE
        return any(start < end for start in self.excluding_alerts.values()) or any(
            start < end and minute < until for start, until in self.excluded_periods
        )


@dataclass(frozen=True, slots=True)
class FleetBurnState:
    """The burn state of all clusters of a fleet."""

    clusters: Mapping[str, ClusterBurnState] = field(default_factory=dict)

    def cluster(self, cluster_id: str) -> ClusterBurnState:
        """Return the cluster's burn state; the initial one for an unknown cluster."""
        return self.clusters.get(cluster_id, ClusterBurnState())

    def open_findings(self) -> tuple[tuple[FindingSubject, HealthState], ...]:
        """Return the subjects that have an open burn alert, with their states."""
        return tuple(
            (FindingSubject(cluster_id, condition), HealthState(condition.value))
            for cluster_id, cluster in sorted(self.clusters.items())
            for condition in sorted(cluster.burning)
        )
