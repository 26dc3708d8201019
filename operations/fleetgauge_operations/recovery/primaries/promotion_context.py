"""The real clusters, lease store and promotion command behind a promotion."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_core.fleet import Primaries
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_operations.recovery.drill import forecast_failover
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.primaries.commands import run_command
from fleetgauge_operations.recovery.primaries.lease_store_reader import build_reachability, read_leases
from fleetgauge_operations.recovery.primaries.plan.primary_state import PrimaryState, evaluate_primary
from fleetgauge_operations.recovery.primaries.plan.promotion import (
    PromotionInputs,
    PromotionPlan,
    plan_promotion,
)
from fleetgauge_operations.recovery.readiness.plan.rates import InboundRates
from fleetgauge_operations.recovery.recovery_context import RecoveryContext, now_ms

_log = logging.getLogger("fleetgauge.recover")

#: Between the two inspections from which rates are computed.
_INSPECTION_INTERVAL_S = 2.0
#: The promotion command may take long, because it moves traffic.
_COMMAND_TIMEOUT_S = 300.0
_PLACEHOLDER = re.compile(r"\{(service|from|to|epoch)\}")


@dataclass(frozen=True, slots=True)
class LivePromotionContext:
    """Implements promotion_executor.PromotionContext with real clusters; ``wait`` takes seconds."""

    recovery: RecoveryContext
    primaries: Primaries
    service: str
    pair: ClusterPair
    wait: Callable[[float], object]

    def plan(self) -> PromotionPlan:
        """Inspect clusters, groups and leases, and check the preconditions."""
        fleet, collector = self.recovery.fleet, self.recovery.collector
        rates = self._measure_rates()
        forecasts = self._forecast_groups()
        reachability = build_reachability(fleet, collector.reachable)
        leases = read_leases(self.primaries, fleet)
        inputs = PromotionInputs(
            evaluate_primary(self.service, leases, reachability, datetime.now(UTC)),
            reachability,
            collector.state,
            forecasts,
            rates,
            now_ms(),
        )
        groups = self.primaries.services[self.service]
        return plan_promotion(self.service, groups, self.pair, fleet.recovery, inputs)

    def read_primary_state(self) -> PrimaryState:
        """Read the leases, taking every cluster as reachable."""
        fleet = self.recovery.fleet
        reachability = build_reachability(fleet, frozenset(cluster.id for cluster in fleet.clusters))
        leases = read_leases(self.primaries, fleet)
        return evaluate_primary(self.service, leases, reachability, datetime.now(UTC))

    def is_target(self, primary: str) -> bool:
        """Return whether a lease's primary is the cluster to be promoted, or its region."""
        return self.pair.passive in build_reachability(self.recovery.fleet, frozenset()).clusters(primary)

    def promote(self, epoch: int) -> None:
        """Run recovery.primaries.promote. Raises CommandError."""
        values = {
            "service": self.service,
            "from": self.pair.active,
            "to": self.pair.passive,
            "epoch": str(epoch),
        }
        # All placeholders are replaced in one pass, so that a value is never taken for a placeholder.
        command = [_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in self.primaries.promote]
        run_command(command, _COMMAND_TIMEOUT_S)

    def _measure_rates(self) -> dict[str, float]:
        """Return the records per second written to each source between two inspections."""
        rates, collector = InboundRates(), self.recovery.collector
        for pause_s in (0, _INSPECTION_INTERVAL_S):
            self.wait(pause_s)
            collector.collect()
            for cluster, ends in collector.source_ends.items():
                rates.observe(cluster, ends, now_ms())
        measured = {cluster: rates.records_per_s(cluster) for cluster in collector.source_ends}
        return {cluster: rate for cluster, rate in measured.items() if rate is not None}

    def _forecast_groups(self) -> list[GroupForecast] | None:
        """Return None if one of the two clusters is unreachable."""
        collector = self.recovery.collector
        state, reachable = collector.state, collector.reachable
        if not {self.pair.active, self.pair.passive} <= reachable:
            return None
        group_syncs = [sync for sync in self.recovery.group_syncs if sync.pair == self.pair]
        try:
            # A promotion writes no offsets, so groups resume from what is committed already.
            plans = [plan.without_writes for sync in group_syncs for plan in sync.plan_groups(state)]
        except KafkaUnavailableError as error:
            _log.warning("cannot read consumer groups: %s", error)
            return None
        return [forecast_failover(self.recovery.fleet, plan, state, now_ms()) for plan in plans]


def create_promotion_context(
    recovery: RecoveryContext,
    service: str,
    pair: ClusterPair,
    execute: bool,
    wait: Callable[[float], object],
) -> LivePromotionContext:
    """Create the context of one promotion.

    Raises: InputError if the fleet file does not name the service, a cluster or the promotion command.
    """
    fleet = recovery.fleet
    primaries = fleet.recovery.primaries
    if primaries is None:
        raise InputError("recovery.primaries is missing: configure the store that names primaries")
    if service not in primaries.services:
        services = ", ".join(primaries.services) or "none"
        raise InputError(f"recovery.primaries.services has no {service!r} (known: {services})")
    clusters = [cluster.id for cluster in fleet.clusters]
    for cluster in (pair.active, pair.passive):
        if cluster not in clusters:
            raise InputError(f"no cluster {cluster!r} (known: {', '.join(clusters)})")
    if pair.active == pair.passive:
        raise InputError(f"cannot promote {pair.active} to replace itself: name another cluster with --to")
    if execute and not primaries.promote:
        raise InputError("recovery.primaries.promote is empty: configure the command that promotes a primary")
    return LivePromotionContext(recovery, primaries, service, pair, wait)
