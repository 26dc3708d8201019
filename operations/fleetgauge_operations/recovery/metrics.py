"""What /metrics of `recover run` tells. Names and labels are a promise: docs/operations.md lists them."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge

from fleetgauge_operations.recovery.deciding import Verdict
from fleetgauge_operations.recovery.known import Known
from fleetgauge_operations.recovery.lag import lag_of
from fleetgauge_operations.recovery.moving import GroupPlan
from fleetgauge_probes.fleet import Mirror


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
