"""What /metrics of `recover run` tells. Names and labels are a promise: docs/operations.md lists them."""

import math
from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge

from fleetgauge_core.fleet import Mirror
from fleetgauge_core.tables import GROUP_MINUTES, MIRROR_MINUTES
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan
from fleetgauge_operations.recovery.offsets.lag import lag_of
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.sync_decision import Verdict
from fleetgauge_operations.recovery.readiness.plan.conditions import Kind
from fleetgauge_operations.recovery.readiness.tracker import Judged


class RecoverMetrics:
    """Takes what is known and decided, and keeps the registry up to it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        mirror = ("source", "destination")
        self._kept_up = Gauge(
            "fleetgauge_mirror_kept_up_timestamp_seconds",
            "When the partition that is furthest back was last seen to copy, or to have nothing to copy.",
            mirror,
            registry=registry,
        )
        self._behind = Gauge(
            "fleetgauge_mirror_behind_records",
            "Records at the source that are not known to have arrived.",
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
            "How long a record takes to be copied, as far as tracers tell; NaN where they do not.",
            mirror,
            registry=registry,
        )
        self._ready = Gauge(
            "fleetgauge_recovery_ready_groups",
            "Consumer groups that could go on in the passive cluster now.",
            ("active", "passive"),
            registry=registry,
        )
        self._findings = Gauge(
            "fleetgauge_recovery_findings",
            "What speaks against a failover and has been told, by kind.",
            ("kind",),
            registry=registry,
        )

    def looked(self, known: Known, mirrors: Iterable[Mirror], now_ms: int) -> None:
        for mirror in mirrors:
            between = (mirror.source, mirror.destination)
            histories = known.between(*between)
            kept_up = [known.kept_up_ms(one.route) for one in histories]
            heard = [one for one in kept_up if one is not None]
            if heard and len(heard) == len(kept_up):
                self._kept_up.labels(*between).set(min(heard) / 1000)
            lags = (lag_of(one, now_ms) for one in histories)
            self._behind.labels(*between).set(sum(lag.records_at_most for lag in lags if lag))

    def moved(self, active: str, passive: str, plans: Iterable[GroupPlan]) -> None:
        """All groups of that pair."""
        verdicts = Counter(verdict for one in plans for verdict in {d.verdict for d in one.decisions})
        for verdict in Verdict:
            self._groups.labels(active, passive, verdict.value).set(verdicts[verdict])

    def judged(self, found: Judged) -> None:
        for row in found.rows[MIRROR_MINUTES]:
            late_s = row["behind_s"]
            self._late.labels(row["source"], row["destination"]).set(math.nan if late_s is None else late_s)
        ready = Counter((row["active"], row["passive"]) for row in found.rows[GROUP_MINUTES] if row["ready"])
        for pair in {(row["active"], row["passive"]) for row in found.rows[GROUP_MINUTES]}:
            self._ready.labels(*pair).set(ready[pair])
        kinds = Counter(one.whom.kind for one in found.opened)
        for kind in Kind:
            self._findings.labels(kind.value).set(kinds[kind])
