"""What every command of `fleetgauge mitigate` works with."""

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    FleetFileError,
    load_fleet,
)
from fleetgauge_core.kafka import LeadershipStatus
from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_operations.mitigation.case import Case
from fleetgauge_operations.mitigation.case_notifier import CaseNotifier
from fleetgauge_operations.mitigation.hand import Hand
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS, Limits
from fleetgauge_operations.mitigation.live import LiveCluster, only_hand
from fleetgauge_operations.mitigation.look import Look
from fleetgauge_operations.mitigation.record import Record
from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.outboxes import Outboxes, notify_now

#: A turn that restarts brokers takes many minutes, in which nothing is sent again.
_VALID_FOR = timedelta(minutes=30)


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
                may_act=lambda: term.confirm() is LeadershipStatus.HELD,
                clock=now,
                wait=time.sleep,
                limits=limits,
            )

    def notify(self, notification: Notification) -> list[str]:
        """Notify people while somebody waits at a terminal; return the receivers that accepted it."""
        return notify_now(self.fleet.notifiers, notification, now, time.monotonic, time.sleep)

    def case_notifier(self) -> CaseNotifier:
        """Return what notifies people for as long as this process acts."""
        outboxes = Outboxes(self.fleet.notifiers, now, time.monotonic, _VALID_FOR)
        return CaseNotifier(_Cases(self.look.record), outboxes, lambda: only_hand(self.look.telemetry), now)


@dataclass(frozen=True, slots=True)
class _Cases:
    """Cases as they are recorded."""

    record: Record

    def all_cases(self) -> Iterable[Case]:
        return self.record.read(now()).cases

    def amend(self, case: Case) -> None:
        self.record.amend(case)


def desk_of(config: Path, location: str | None) -> Desk:
    """The tables are at ``location``, or where the file says. Raises InputError."""
    fleet = fleet_of(config)
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the watch's findings are")
    lake = location or fleet.lake
    look = Look(fleet, fleet.telemetry, Record(lake), CorrectionStore(lake), now)
    return Desk(fleet, look, config)


def fleet_of(config: Path) -> Fleet:
    """Raises InputError."""
    try:
        return load_fleet(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error


def new_case_id() -> str:
    return uuid.uuid4().hex[:12]


def now() -> datetime:
    return datetime.now(UTC)
