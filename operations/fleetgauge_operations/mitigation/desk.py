"""What every command of `fleetgauge mitigate` works with."""

import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    FleetFileError,
    load,
)
from fleetgauge_core.kafka import Standing
from fleetgauge_core.lake.corrections import Corrections
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_operations.mitigation.hand import Hand
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.live import LiveCluster, only_hand
from fleetgauge_operations.mitigation.look import Look
from fleetgauge_operations.mitigation.record import Record
from fleetgauge_operations.notify.notification import Bulletin, hosts, tell


@dataclass(frozen=True, slots=True)
class Desk:
    """A fleet, where its situation is read, and what changes it."""

    fleet: Fleet
    look: Look
    config: Path

    def cluster(self, cluster_id: str) -> Cluster:
        """Raises InputError."""
        known = {one.id: one for one in self.fleet.clusters}
        if cluster_id not in known:
            raise InputError(f"{self.config}: no cluster {cluster_id} (known: {', '.join(list(known)[:10])})")
        return known[cluster_id]

    @contextmanager
    def hand(self, cluster: Cluster, limits: Limits = DEFAULT_LIMITS) -> Iterator[Hand]:
        """The only one in the fleet. Raises KafkaUnavailableError, SeatTakenError."""
        with only_hand(self.look.telemetry) as term:
            yield Hand(
                observe=lambda but: self.look.again(cluster, but),
                cluster=LiveCluster(cluster, self.look.telemetry, now),
                journal=self.look.record,
                may_act=lambda: term.confirm() is Standing.HELD,
                clock=now,
                wait=time.sleep,
                limits=limits,
            )

    def tell(self, bulletin: Bulletin, but: Collection[str] = ()) -> list[str]:
        """By host, who was told of it; ``but`` those who know."""
        return tell(self.fleet.notifiers, bulletin, time.sleep, but)

    def everybody(self) -> frozenset[str]:
        """By host, who is to be told of what is done."""
        return hosts(self.fleet.notifiers)


def desk_of(config: Path, location: str | None) -> Desk:
    """The tables are at ``location``, or where the file says. Raises InputError."""
    fleet = fleet_of(config)
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the watch's findings are")
    lake = location or fleet.lake
    look = Look(fleet, fleet.telemetry, Record(lake), Corrections(lake), now)
    return Desk(fleet, look, config)


def fleet_of(config: Path) -> Fleet:
    """Raises InputError."""
    try:
        return load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error


def new_case_id() -> str:
    return uuid.uuid4().hex[:12]


def now() -> datetime:
    return datetime.now(UTC)
