"""What clusters spend of their budgets, followed from the topic of minutes beside the pulses."""

import time
from collections.abc import Callable, Mapping, Set
from datetime import datetime, timedelta
from functools import partial

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_core.detection import (
    LONGEST_BURN_WINDOW,
    BurnSettings,
    Finding,
    FleetBurnState,
    exclude_paged_errors,
    fold_minute_record,
    fold_past_minute_record,
    remove_cluster_burns,
)
from fleetgauge_core.detection.objectives import derive_burn_settings
from fleetgauge_core.detection.record_reader import decode_minute
from fleetgauge_core.fleet import Cluster, Fleet, Telemetry
from fleetgauge_core.kafka import TopicReader
from fleetgauge_operations.watch.state_store import StateStore

#: Of a backlog so much at once: a pulse must not wait for it.
_AT_ONCE_S = 0.05
#: An agent's clock may be a little ahead of ours; one that is further ahead would close minutes in which the
#: others have not had their say.
_AHEAD = timedelta(seconds=10)
_MINUTE = timedelta(minutes=1)
#: A watch that catches up must not page for what was.
_STALE_AFTER = timedelta(minutes=10)


class BurnTracker:
    """Reads from ``start`` to ``stop``, from where what is known of ``budgets`` ends.

    ``out``: the brokers of a cluster that are planned to be out in a minute; None among them, all.
    """

    def __init__(
        self,
        fleet: Fleet,
        telemetry: Telemetry,
        memory: StateStore,
        budgets: FleetBurnState,
        out: Callable[[str, datetime], Set[int | None]],
    ) -> None:
        self._clusters: Mapping[str, tuple[Cluster, BurnSettings]] = {
            one.id: (one, derive_burn_settings(fleet, one)) for one in fleet.clusters
        }
        self._memory = memory
        self._out = out
        self._reader = TopicReader(telemetry.access, telemetry.topics.probe_minutes.name, "fleetgauge-watch")
        self._budgets = budgets

    def start(self, now: datetime) -> None:
        """Raises KafkaUnavailableError."""
        self._reader.start()
        partitions = self._reader.wait_for_partitions()
        starts = self._reader.find_offsets_at(partitions, self._known_until(now))
        self._reader.assign_from(starts)
        self._reader.assign(set(partitions) - set(starts))

    def stop(self) -> None:
        self._reader.stop()

    def read(self, now: datetime) -> tuple[Finding, ...]:
        """Fold in what has come; what that shows."""
        found: list[Finding] = []
        until_s = time.monotonic() + _AT_ONCE_S
        while time.monotonic() < until_s and (message := self._reader.poll(0)):
            record = decode_minute(message.value)
            if record and record.minute + _MINUTE <= now + _AHEAD:
                found += self._count(record, now)
        return tuple(found)

    def explain(self, finding: Finding) -> None:
        """Somebody is told of this, so what it costs needs no page of its own."""
        self._budgets = exclude_paged_errors(self._budgets, finding)

    def retire(self, gone: Callable[[str], bool], now: datetime) -> tuple[Finding, ...]:
        """Forget the clusters that are not watched any more; what that ends."""
        self._budgets, over = remove_cluster_burns(self._budgets, gone, now)
        return over

    def _count(self, record: ProbeMinute, now: datetime) -> tuple[Finding, ...]:
        if not self._counts(record.cluster_id, record.minute):
            return ()
        goal = self._clusters[record.cluster_id][1]
        before = self._budgets.cluster(record.cluster_id).minutes
        found: tuple[Finding, ...] = ()
        planned = partial(self._out, record.cluster_id)
        if now - record.minute > _STALE_AFTER:
            self._budgets = fold_past_minute_record(self._budgets, record, goal, planned)
        else:
            self._budgets, found = fold_minute_record(self._budgets, record, goal, planned)
        after = self._budgets.cluster(record.cluster_id).minutes
        if after[-1:] != before[-1:]:
            self._memory.spent(record.cluster_id, after, after[-1].minute)
        return found

    def _counts(self, cluster_id: str, at: datetime) -> bool:
        known = self._clusters.get(cluster_id)
        return known is not None and known[0].is_in_scope_at(at)

    def _known_until(self, now: datetime) -> datetime:
        """From when on records may tell something new; a cluster that was never heard of has no past."""
        known = (one for cluster_id, one in self._budgets.clusters.items() if self._counts(cluster_id, now))
        ends = [one.minutes[-1].minute for one in known if one.minutes]
        return max(min(ends, default=now - LONGEST_BURN_WINDOW), now - LONGEST_BURN_WINDOW)
