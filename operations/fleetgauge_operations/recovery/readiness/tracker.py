"""Evaluate failover readiness, store a row per minute, and notify of findings that open or close."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.tables import (
    DRILLS,
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
    Table,
)
from fleetgauge_operations.notify.outboxes import Outboxes
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, CheckpointOrigin, PartitionRoute
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.readiness.finding_notification import (
    RENOTIFIED_WITHIN,
    finding_notification,
    finding_row,
    latest_findings,
)
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    ConditionKind,
    ReadinessCondition,
    check_group_minutes,
    check_headroom_minutes,
    check_mirror_minute,
    check_producer_minutes,
)
from fleetgauge_operations.recovery.readiness.plan.findings import FindingTracker, RecoveryFinding
from fleetgauge_operations.recovery.readiness.plan.minutes import (
    EvaluationTime,
    MinuteRow,
    build_group_minute,
    build_mirror_minute,
    build_producer_minute,
    latest_rto_by_group,
)
from fleetgauge_operations.recovery.readiness.plan.rates import InboundRates
from fleetgauge_operations.recovery.sync_collector import SyncCollector
from fleetgauge_operations.recovery.tracers.plan.delays import MirrorRoute, TracerAcks
from fleetgauge_operations.recovery.tracers.tracer_loop import EMPTY_TRACER_REPORT, PARTITION, TracerReport

_log = logging.getLogger("fleetgauge.recover")

_MINUTE = timedelta(minutes=1)
#: Minutes between compactions, because every commit adds a small file.
_COMPACT_AFTER = 60
#: Maximum number of unwritten rows per table while the lake is unavailable; the oldest are dropped.
_MAX_UNWRITTEN = 100_000

#: Returns the conditions of services that are active in every region, given the reachable clusters.
CheckPrimaries = Callable[[frozenset[str]], Iterable[ReadinessCondition]]


@dataclass(frozen=True, slots=True)
class ReadinessEvaluation:
    """The minute rows as of this evaluation, and the conditions of all open findings."""

    rows: Mapping[Table, Sequence[MinuteRow]]
    opened: Sequence[ReadinessCondition]


class ReadinessTracker:
    """Evaluates and records the failover readiness of a fleet."""

    def __init__(
        self,
        fleet: Fleet,
        lake: str,
        check_primaries: CheckPrimaries,
        clock: Callable[[], datetime],
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fleet = fleet
        self._check_primaries = check_primaries
        self._clock = clock
        self._rates = InboundRates()
        self._stores = {
            table: TableStore(lake, table, create=True)
            for table in (MIRROR_MINUTES, GROUP_MINUTES, PRODUCER_MINUTES, RECOVERY_FINDINGS)
        }
        self._drills = TableStore(lake, DRILLS, create=True)
        self._unwritten: dict[Table, list[MinuteRow]] = {table: [] for table in self._stores}
        self._outboxes = Outboxes(fleet.notifiers, clock, elapsed_s)
        self._tracers_of_minute = EMPTY_TRACER_REPORT
        self._minutes_since_compaction = 0

    def start(self) -> None:
        """Restore the open findings of an earlier process. Raises TableStoreError."""
        now = self._clock()
        findings = latest_findings(self._stores[RECOVERY_FINDINGS].rows())
        self._findings = FindingTracker(finding.condition for finding in findings if finding.opens)
        # The earlier process may have ended before all receivers had the notification; receivers ignore
        # one that repeats an id.
        for finding in findings:
            if finding.opens or now - finding.at < RENOTIFIED_WITHIN:
                self._notify(finding)
        self._rto_ms = latest_rto_by_group(self._drills.rows())
        # An earlier process may have written the current minute already.
        self._next_minute = _floor(now) + _MINUTE

    def observe_rates(self, collector: SyncCollector, now_ms: int) -> None:
        """Update the rates of all clusters with the end offsets of the last inspection."""
        for cluster, ends in collector.source_ends.items():
            self._rates.observe(cluster, ends, now_ms)

    def evaluate(
        self,
        collector: SyncCollector,
        forecasts: Mapping[ClusterPair, Sequence[GroupForecast]],
        report: TracerReport,
    ) -> ReadinessEvaluation:
        """Evaluate the fleet now; once a minute, store the rows.

        ``forecasts`` are those of cluster pairs that could be inspected; ``report`` is the tracers' since
        the previous evaluation.
        """
        now = self._clock()
        if report.delays:
            self._tracers_of_minute = self._tracers_of_minute.merge(report)
        is_minute_over = now >= self._next_minute + _MINUTE
        minute = _floor(now) - _MINUTE if is_minute_over else _floor(now)
        rows = self._build_rows(collector, forecasts, EvaluationTime(now, minute))
        conditions = [*self._find_conditions(rows, collector), *self._conditions_of_unknown_groups(forecasts)]
        findings = self._findings.evaluate(conditions, now)
        for finding in findings:
            self._notify(finding)
        self._enqueue(RECOVERY_FINDINGS, map(finding_row, findings))
        if is_minute_over:
            self._add_tracer_checkpoints(collector)
            self._close_minute(rows, now)
        self._write()
        self._outboxes.send()
        return ReadinessEvaluation(rows, self._findings.opened)

    def _build_rows(
        self,
        collector: SyncCollector,
        forecasts: Mapping[ClusterPair, Sequence[GroupForecast]],
        evaluation_time: EvaluationTime,
    ) -> dict[Table, list[MinuteRow]]:
        recovery, report = self._fleet.recovery, self._tracers_of_minute
        mirrors = [
            build_mirror_minute(
                mirror,
                recovery,
                collector.state,
                report.delays.get(MirrorRoute(mirror.source, mirror.destination)),
                self._rates.records_per_s(mirror.source),
                collector.reachable,
                evaluation_time,
            )
            for mirror in recovery.mirrors
        ]
        groups = [
            build_group_minute(
                pair, forecast, self._rto_ms.get((pair.active, pair.passive, forecast.group)), evaluation_time
            )
            for pair, group_forecasts in forecasts.items()
            for forecast in group_forecasts
        ]
        vantage = recovery.tracers.vantage if recovery.tracers else ""
        sources = sorted({mirror.source for mirror in recovery.mirrors})
        producers = [
            build_producer_minute(
                vantage,
                source,
                report.acks.get(source, TracerAcks()),
                self._rates.records_per_s(source),
                recovery.capacity(source),
                evaluation_time,
            )
            for source in sources
        ]
        return {MIRROR_MINUTES: mirrors, GROUP_MINUTES: groups, PRODUCER_MINUTES: producers}

    def _find_conditions(
        self, rows: Mapping[Table, Sequence[MinuteRow]], collector: SyncCollector
    ) -> Iterable[ReadinessCondition]:
        conditions = [
            condition
            for row in rows[MIRROR_MINUTES]
            for condition in check_mirror_minute(row, self._fleet.recovery)
        ]
        mirror_conditions = [
            condition.key for condition in conditions if condition.key.kind is not ConditionKind.MIRROR_LOOP
        ]
        rows_by_pair: dict[tuple[str, str], list[MinuteRow]] = {}
        for row in rows[GROUP_MINUTES]:
            rows_by_pair.setdefault((row["active"], row["passive"]), []).append(row)
        for (active, passive), group_rows in rows_by_pair.items():
            conditions += check_group_minutes(active, passive, group_rows, mirror_conditions)
        conditions += check_producer_minutes(rows[PRODUCER_MINUTES])
        conditions += check_headroom_minutes(rows[PRODUCER_MINUTES])
        conditions += self._check_primaries(collector.reachable)
        return conditions

    def _conditions_of_unknown_groups(
        self, forecasts: Mapping[ClusterPair, Sequence[GroupForecast]]
    ) -> Iterable[ReadinessCondition]:
        """Return the open conditions of groups that could not be inspected, which must not close."""
        pairs = {(groups.active, groups.passive) for groups in self._fleet.recovery.groups}
        unknown = pairs - {(pair.active, pair.passive) for pair in forecasts}
        return (
            condition
            for condition in self._findings.opened
            if condition.key.kind is ConditionKind.GROUPS_NOT_READY
            and (condition.key.cluster, condition.key.other) in unknown
        )

    def _add_tracer_checkpoints(self, collector: SyncCollector) -> None:
        """Add the exact offsets of one tracer per mirror and minute to the checkpoints."""
        tracers = self._fleet.recovery.tracers
        if tracers is None:
            return
        for mapping in self._tracers_of_minute.mappings:
            route = PartitionRoute(*mapping.route, tracers.topic, PARTITION)
            checkpoint = Checkpoint(
                mapping.src_offset, mapping.dst_offset, mapping.seen_ms, CheckpointOrigin.TRACER
            )
            collector.add_checkpoint(route, checkpoint)

    def _close_minute(self, rows: Mapping[Table, Sequence[MinuteRow]], now: datetime) -> None:
        for table, minute_rows in rows.items():
            self._enqueue(table, minute_rows)
        self._tracers_of_minute = EMPTY_TRACER_REPORT
        self._next_minute = _floor(now)
        self._minutes_since_compaction += 1
        try:
            self._rto_ms = latest_rto_by_group(self._drills.rows())
        except TableStoreError as error:
            _log.warning("%s", error)

    def _enqueue(self, table: Table, rows: Iterable[MinuteRow]) -> None:
        self._unwritten[table] = [*self._unwritten[table], *rows][-_MAX_UNWRITTEN:]

    def _write(self) -> None:
        try:
            for table, rows in self._unwritten.items():
                if rows:
                    self._stores[table].append(rows)
                    self._unwritten[table] = []
            if self._minutes_since_compaction >= _COMPACT_AFTER:
                self._minutes_since_compaction = 0
                for store in self._stores.values():
                    store.compact()
                    store.vacuum()
        except TableStoreError as error:
            _log.warning("recovery tables are not written: %s", error)

    def _notify(self, finding: RecoveryFinding) -> None:
        """Queue a notification; open findings are resent to Alertmanager until they close."""
        self._outboxes.put(finding_notification(finding, self._fleet.page_url))


def _floor(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
