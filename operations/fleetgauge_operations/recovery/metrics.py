"""Prometheus metrics of `recover run`. Names and labels are stable: docs/operations/metrics.md lists them."""

import math
from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge

from fleetgauge_core.fleet import Mirror
from fleetgauge_core.tables import GROUP_MINUTES, MIRROR_MINUTES
from fleetgauge_operations.recovery.group_offset_sync import GroupSyncPlan
from fleetgauge_operations.recovery.offsets.lag import measure_lag
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import SyncVerdict
from fleetgauge_operations.recovery.readiness.plan.conditions import ConditionKind
from fleetgauge_operations.recovery.readiness.tracker import ReadinessEvaluation


class RecoveryMetrics:
    """Updates gauges from the replication state, group plans and readiness evaluations."""

    def __init__(self, registry: CollectorRegistry) -> None:
        mirror = ("source", "destination")
        self._kept_up = Gauge(
            "fleetgauge_mirror_kept_up_timestamp_seconds",
            "When the partition that is furthest behind last made progress, or had nothing to replicate.",
            mirror,
            registry=registry,
        )
        self._behind = Gauge(
            "fleetgauge_mirror_behind_records",
            "Upper bound of the replication lag: source records that are not known to be replicated.",
            mirror,
            registry=registry,
        )
        self._groups = Gauge(
            "fleetgauge_recovery_groups",
            "Consumer groups that have a partition with that verdict.",
            ("active", "passive", "verdict"),
            registry=registry,
        )

        self._late = Gauge(
            "fleetgauge_mirror_late_seconds",
            "Replication delay of a record, estimated by tracers; NaN without tracers.",
            mirror,
            registry=registry,
        )
        self._ready = Gauge(
            "fleetgauge_recovery_ready_groups",
            "Consumer groups that are ready for a failover to the passive cluster.",
            ("active", "passive"),
            registry=registry,
        )
        self._findings = Gauge(
            "fleetgauge_recovery_findings",
            "Open findings that speak against a failover, by kind.",
            ("kind",),
            registry=registry,
        )

    def update_mirrors(self, state: ReplicationState, mirrors: Iterable[Mirror], now_ms: int) -> None:
        """Set the progress and the replication lag of each mirror."""
        for mirror in mirrors:
            labels = (mirror.source, mirror.destination)
            histories = state.histories_between(*labels)
            progress_ms = [state.last_progress_ms(history.route) for history in histories]
            known_ms = [at_ms for at_ms in progress_ms if at_ms is not None]
            if known_ms and len(known_ms) == len(progress_ms):
                self._kept_up.labels(*labels).set(min(known_ms) / 1000)
            lags = (measure_lag(history, now_ms) for history in histories)
            self._behind.labels(*labels).set(sum(lag.records_at_most for lag in lags if lag))

    def update_groups(self, active: str, passive: str, plans: Iterable[GroupSyncPlan]) -> None:
        """Set the number of groups per verdict, given the plans of all groups of a cluster pair."""
        verdicts = Counter(
            verdict for plan in plans for verdict in {decision.verdict for decision in plan.decisions}
        )
        for verdict in SyncVerdict:
            self._groups.labels(active, passive, verdict.value).set(verdicts[verdict])

    def update_readiness(self, evaluation: ReadinessEvaluation) -> None:
        """Set the replication delays, the number of ready groups, and the open findings."""
        for row in evaluation.rows[MIRROR_MINUTES]:
            late_s = row["behind_s"]
            self._late.labels(row["source"], row["destination"]).set(math.nan if late_s is None else late_s)
        group_rows = evaluation.rows[GROUP_MINUTES]
        ready = Counter((row["active"], row["passive"]) for row in group_rows if row["ready"])
        for pair in {(row["active"], row["passive"]) for row in group_rows}:
            self._ready.labels(*pair).set(ready[pair])
        kinds = Counter(condition.key.kind for condition in evaluation.opened)
        for kind in ConditionKind:
            self._findings.labels(kind.value).set(kinds[kind])
