"""Real clusters, the user's store of claims, and the user's command."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_core.fleet import Primaries
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_operations.recovery.drill import forecast_of
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.primaries.commands import ran
from fleetgauge_operations.recovery.primaries.lease_store_reader import claims_now, reach_of
from fleetgauge_operations.recovery.primaries.plan.primary_state import Standing, standing
from fleetgauge_operations.recovery.primaries.plan.promotion import Promotion, Seen, weighed
from fleetgauge_operations.recovery.readiness.plan.rates import Rates
from fleetgauge_operations.recovery.regions import Regions, now_ms

_log = logging.getLogger("fleetgauge.recover")

#: Between two looks, which give rates.
_LOOKS_APART_S = 2.0
#: It moves traffic.
_PROMOTED_WITHIN_S = 300.0
_PLACEHOLDER = re.compile(r"\{(service|from|to|epoch)\}")


@dataclass(frozen=True, slots=True)
class LiveScene:
    """See promoting.Scene."""

    regions: Regions
    primaries: Primaries
    service: str
    pair: Pair
    wait: Callable[[float], object]

    def promotion(self) -> Promotion:
        fleet, collector = self.regions.fleet, self.regions.collector
        rates = self._rates()
        forecasts = self._forecasts()
        reach = reach_of(fleet, collector.answering)
        claims = claims_now(self.primaries, fleet)
        seen = Seen(
            standing(self.service, claims, reach, datetime.now(UTC)),
            reach,
            collector.known,
            forecasts,
            rates,
            now_ms(),
        )
        return weighed(self.service, self.primaries.services[self.service], self.pair, fleet.recovery, seen)

    def standing(self) -> Standing:
        fleet = self.regions.fleet
        reach = reach_of(fleet, frozenset(one.id for one in fleet.clusters))
        return standing(self.service, claims_now(self.primaries, fleet), reach, datetime.now(UTC))

    def is_passive(self, primary: str) -> bool:
        return self.pair.passive in reach_of(self.regions.fleet, frozenset()).clusters(primary)

    def promote(self, epoch: int) -> None:
        values = {
            "service": self.service,
            "from": self.pair.active,
            "to": self.pair.passive,
            "epoch": str(epoch),
        }
        # At once, so that no value is taken for a placeholder.
        command = [_PLACEHOLDER.sub(lambda one: values[one[1]], word) for word in self.primaries.promote]
        ran(command, _PROMOTED_WITHIN_S)

    def _rates(self) -> dict[str, float]:
        """Records a second that each source is given, between two looks."""
        rates, collector = Rates(), self.regions.collector
        for pause_s in (0, _LOOKS_APART_S):
            self.wait(pause_s)
            collector.look()
            for cluster, ends in collector.ends.items():
                rates.look(cluster, ends, now_ms())
        measured = {cluster: rates.of(cluster) for cluster in collector.ends}
        return {cluster: rate for cluster, rate in measured.items() if rate is not None}

    def _forecasts(self) -> list[GroupForecast] | None:
        """None where a cluster does not answer."""
        known, answering = self.regions.collector.known, self.regions.collector.answering
        if not {self.pair.active, self.pair.passive} <= answering:
            return None
        of_pair = [one for one in self.regions.movers if one.pair == self.pair]
        try:
            # Who promotes writes no offsets.
            plans = [plan.unwritten for mover in of_pair for plan in mover.plans(known)]
        except KafkaUnavailableError as error:
            _log.warning("groups cannot be seen: %s", error)
            return None
        return [forecast_of(self.regions.fleet, plan, known, now_ms()) for plan in plans]


def scene_of(
    regions: Regions, service: str, pair: Pair, execute: bool, wait: Callable[[float], object]
) -> LiveScene:
    """Raises InputError where there is no such thing."""
    fleet = regions.fleet
    primaries = fleet.recovery.primaries
    if primaries is None:
        raise InputError("recovery.primaries is missing: say where it is said which region is the primary")
    if service not in primaries.services:
        known = ", ".join(primaries.services) or "none"
        raise InputError(f"recovery.primaries.services has no {service!r} (known: {known})")
    clusters = [one.id for one in fleet.clusters]
    for cluster in (pair.active, pair.passive):
        if cluster not in clusters:
            raise InputError(f"no cluster {cluster!r} (known: {', '.join(clusters)})")
    if pair.active == pair.passive:
        raise InputError(f"from {pair.active} to itself is nowhere: name another one with --to")
    if execute and not primaries.promote:
        raise InputError("recovery.primaries.promote is empty: say which command makes another the primary")
    return LiveScene(regions, primaries, service, pair, wait)
