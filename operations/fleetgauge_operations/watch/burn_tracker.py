"""Consume the topic of probe minutes, beside the pulses, and evaluate burn-rate alerts."""

import time
from collections.abc import Callable, Mapping, Set
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_core.detection import (
    LONGEST_BURN_WINDOW,
    BurnSettings,
    Finding,
    FindingSubject,
    FleetBurnState,
    HealthState,
    exclude_paged_errors,
    fold_minute_record,
    fold_past_minute_record,
    remove_cluster_burns,
)
from fleetgauge_core.detection.objectives import derive_burn_settings
from fleetgauge_core.detection.record_reader import decode_minute
from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.kafka import FollowedReader
from fleetgauge_operations.watch.state_store import StateStore

#: The longest time that one call spends on a backlog, because the next pulse has to wait for it.
_READ_BUDGET_S = 0.05
#: How far the clock of an agent may be ahead of ours. A record from further ahead would close minutes for
#: which other agents have yet to send their records.
_MAX_CLOCK_AHEAD = timedelta(seconds=10)
_MINUTE = timedelta(minutes=1)
#: Older records count, but raise no alert: a watch that catches up must not page for the past.
_STALE_AFTER = timedelta(minutes=10)


class _TrackedCluster(NamedTuple):
    cluster: Cluster
    settings: BurnSettings


class BurnTracker:
    """Tracks burn rates from ``start`` to ``stop``, beginning where the restored ``burn_state`` ends.

    ``brokers_in_maintenance`` returns the brokers of a cluster under planned maintenance in a minute; None
    among them stands for the whole cluster. ``reader`` reads the topic of probe minutes.
    """

    def __init__(
        self,
        fleet: Fleet,
        store: StateStore,
        burn_state: FleetBurnState,
        brokers_in_maintenance: Callable[[str, datetime], Set[int | None]],
        reader: FollowedReader,
    ) -> None:
        self.adopt_fleet(fleet)
        self._store = store
        self._brokers_in_maintenance = brokers_in_maintenance
        self._reader = reader
        self._burn_state = burn_state

    def adopt_fleet(self, fleet: Fleet) -> None:
        """Track the clusters of another fleet, each with its settings there, from the next minute on."""
        self._clusters: Mapping[str, _TrackedCluster] = {
            cluster.id: _TrackedCluster(cluster, derive_burn_settings(fleet, cluster))
            for cluster in fleet.clusters
        }

    def open_findings(self) -> tuple[tuple[FindingSubject, HealthState], ...]:
        """Return the burn alerts that are open."""
        return self._burn_state.open_findings()

    def start(self, now: datetime) -> None:
        """Begin to read the minutes that the restored state lacks. Raises: KafkaUnavailableError."""
        self._reader.start()
        partitions = self._reader.wait_for_partitions()
        starts = self._reader.find_offsets_at(partitions, self._restored_until(now))
        self._reader.assign_from(starts)
        self._reader.assign(set(partitions) - set(starts))

    def stop(self) -> None:
        """Close the consumer."""
        self._reader.stop()

    def read(self, now: datetime) -> tuple[Finding, ...]:
        """Fold in the records that have arrived, for 50 ms at most, and return the findings."""
        findings: list[Finding] = []
        until_s = time.monotonic() + _READ_BUDGET_S
        while time.monotonic() < until_s and (message := self._reader.poll(0)):
            record = decode_minute(message.value)
            if record and record.minute + _MINUTE <= now + _MAX_CLOCK_AHEAD:
                findings += self._fold_record(record, now)
        return tuple(findings)

    def exclude_paged_errors(self, finding: Finding) -> None:
        """Exclude the errors of an alert from burn rates, because that alert has already paged."""
        self._burn_state = exclude_paged_errors(self._burn_state, finding)

    def remove_clusters(self, is_removed: Callable[[str], bool], now: datetime) -> tuple[Finding, ...]:
        """Drop the clusters that are not watched any more; return the findings that clear their alerts."""
        self._burn_state, cleared = remove_cluster_burns(self._burn_state, is_removed, now)
        return cleared

    def _fold_record(self, record: ProbeMinute, now: datetime) -> tuple[Finding, ...]:
        if not self._is_in_scope(record.cluster_id, record.minute):
            return ()
        settings = self._clusters[record.cluster_id].settings
        before = self._burn_state.cluster(record.cluster_id).minutes
        findings: tuple[Finding, ...] = ()
        maintenance = partial(self._brokers_in_maintenance, record.cluster_id)
        if now - record.minute > _STALE_AFTER:
            self._burn_state = fold_past_minute_record(self._burn_state, record, settings, maintenance)
        else:
            self._burn_state, findings = fold_minute_record(self._burn_state, record, settings, maintenance)
        after = self._burn_state.cluster(record.cluster_id).minutes
        if after[-1:] != before[-1:]:
            self._store.save_burn_minutes(record.cluster_id, after, after[-1].minute)
        return findings

    def _is_in_scope(self, cluster_id: str, at: datetime) -> bool:
        tracked = self._clusters.get(cluster_id)
        return tracked is not None and tracked.cluster.is_in_scope_at(at)

    def _restored_until(self, now: datetime) -> datetime:
        """Return the time from which records may be missing; a cluster without minutes has no past."""
        burn_states = (
            burn_state
            for cluster_id, burn_state in self._burn_state.clusters.items()
            if self._is_in_scope(cluster_id, now)
        )
        ends = [burn_state.minutes[-1].minute for burn_state in burn_states if burn_state.minutes]
        return max(min(ends, default=now - LONGEST_BURN_WINDOW), now - LONGEST_BURN_WINDOW)
