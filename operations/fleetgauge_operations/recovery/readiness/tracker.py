"""Readiness, turn by turn: judged, kept a row a minute, and told where it changes."""

import logging
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
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint, Origin, Route
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    Condition,
    Kind,
    of_groups,
    of_headroom,
    of_mirror,
    of_producers,
)
from fleetgauge_operations.recovery.readiness.plan.findings import Finding, Findings
from fleetgauge_operations.recovery.readiness.plan.minutes import (
    Moment,
    Row,
    group_minute,
    mirror_minute,
    producer_minute,
    rto_by_group,
)
from fleetgauge_operations.recovery.readiness.plan.rates import Rates
from fleetgauge_operations.recovery.readiness.telling import GIVE_UP_AFTER, Tray, last_told, row_of
from fleetgauge_operations.recovery.sync_collector import Collector
from fleetgauge_operations.recovery.tracers.plan.delays import Acks, Way
from fleetgauge_operations.recovery.tracers.tracer_loop import NOTHING_TOLD, PARTITION, Told

_log = logging.getLogger("fleetgauge.recover")

_MINUTE = timedelta(minutes=1)
#: A commit each makes small files; so many minutes together are put into one.
_TIDY_AFTER = 60
#: Alertmanager forgets what nobody says again.
_REMIND_AFTER = timedelta(hours=1)
#: Rows that wait for a lake that takes none; then the oldest go.
_WAITING_AT_MOST = 100_000

#: What is wrong with services that are active in every region, given the clusters that answer.
Services = Callable[[frozenset[str]], Iterable[Condition]]


@dataclass(frozen=True, slots=True)
class Judged:
    """All rows of this moment, and what is open."""

    rows: Mapping[Table, Sequence[Row]]
    opened: Sequence[Condition]


class Readiness:
    """Of a fleet."""

    def __init__(self, fleet: Fleet, lake: str, services: Services, clock: Callable[[], datetime]) -> None:
        self._fleet = fleet
        self._services = services
        self._clock = clock
        self._rates = Rates()
        self._stores = {
            table: TableStore(lake, table, create=True)
            for table in (MIRROR_MINUTES, GROUP_MINUTES, PRODUCER_MINUTES, RECOVERY_FINDINGS)
        }
        self._drills = TableStore(lake, DRILLS, create=True)
        self._waiting: dict[Table, list[Row]] = {table: [] for table in self._stores}
        self._tray = Tray(fleet.notifiers, fleet.page_url)
        self._told = NOTHING_TOLD
        self._kept = 0

    def start(self) -> None:
        """Go on with what an earlier process has told of. Raises TableStoreError."""
        now = self._clock()
        before = last_told(self._stores[RECOVERY_FINDINGS].rows())
        self._findings = Findings(one.condition for one in before if one.opens)
        # It may have ended before all had heard; the same words under the same key do no harm.
        for one in before:
            if one.opens or now - one.at < GIVE_UP_AFTER:
                self._tray.put(one, now)
        self._rto = rto_by_group(self._drills.rows())
        # The minute that is under way is another process's, as far as it got.
        self._next_minute = _floor(now) + _MINUTE
        self._remind_at = now + _REMIND_AFTER

    def looked(self, collector: Collector, now_ms: int) -> None:
        """Take in how much has come since."""
        for cluster, ends in collector.ends.items():
            self._rates.look(cluster, ends, now_ms)

    def judge(
        self, collector: Collector, forecasts: Mapping[Pair, Sequence[GroupForecast]], told: Told
    ) -> Judged:
        """``forecasts``: of pairs that could be seen; ``told``: by tracers since the last time."""
        now = self._clock()
        self._told = self._told.then(told) if told.delays else self._told
        is_over = now >= self._next_minute + _MINUTE
        rows = self._rows(
            collector, forecasts, Moment(now, _floor(now) - _MINUTE if is_over else _floor(now))
        )
        found = self._findings.judge([*self._conditions(rows, collector), *self._unseen(forecasts)], now)
        for finding in found:
            self._tray.put(finding, now)
        self._wait_for(RECOVERY_FINDINGS, map(row_of, found))
        if is_over:
            self._keep_pairings(collector)
            self._keep_minute(rows, now)
        self._write()
        self._remind(now)
        self._tray.send(now)
        return Judged(rows, self._findings.opened)

    def _rows(
        self, collector: Collector, forecasts: Mapping[Pair, Sequence[GroupForecast]], moment: Moment
    ) -> dict[Table, list[Row]]:
        recovery, told = self._fleet.recovery, self._told
        mirrors = [
            mirror_minute(
                one,
                recovery,
                collector.known,
                told.delays.get(Way(one.source, one.destination)),
                self._rates.of(one.source),
                collector.answering,
                moment,
            )
            for one in recovery.mirrors
        ]
        groups = [
            group_minute(pair, one, self._rto.get((pair.active, pair.passive, one.group)), moment)
            for pair, all_of_it in forecasts.items()
            for one in all_of_it
        ]
        vantage = recovery.tracers.vantage if recovery.tracers else ""
        sources = sorted({one.source for one in recovery.mirrors})
        producers = [
            producer_minute(
                vantage,
                one,
                told.acks.get(one, Acks()),
                self._rates.of(one),
                recovery.capacity(one),
                moment,
            )
            for one in sources
        ]
        return {MIRROR_MINUTES: mirrors, GROUP_MINUTES: groups, PRODUCER_MINUTES: producers}

    def _conditions(self, rows: Mapping[Table, Sequence[Row]], collector: Collector) -> Iterable[Condition]:
        found = [one for row in rows[MIRROR_MINUTES] for one in of_mirror(row, self._fleet.recovery)]
        behind = [one.whom for one in found if one.whom.kind is not Kind.MIRROR_LOOP]
        by_pair: dict[tuple[str, str], list[Row]] = {}
        for row in rows[GROUP_MINUTES]:
            by_pair.setdefault((row["active"], row["passive"]), []).append(row)
        for (active, passive), of_pair in by_pair.items():
            found += of_groups(active, passive, of_pair, behind)
        found += of_producers(rows[PRODUCER_MINUTES])
        found += of_headroom(rows[PRODUCER_MINUTES])
        found += self._services(collector.answering)
        return found

    def _unseen(self, forecasts: Mapping[Pair, Sequence[GroupForecast]]) -> Iterable[Condition]:
        """Of groups that could not be seen this time nothing is over."""
        pairs = {(one.active, one.passive) for one in self._fleet.recovery.groups}
        unseen = pairs - {(one.active, one.passive) for one in forecasts}
        return (
            one
            for one in self._findings.opened
            if one.whom.kind is Kind.GROUPS_NOT_READY and (one.whom.cluster, one.whom.other) in unseen
        )

    def _keep_pairings(self, collector: Collector) -> None:
        """A tracer says exactly where a record lies; one a minute is enough."""
        tracers = self._fleet.recovery.tracers
        if tracers is None:
            return
        for one in self._told.pairings:
            route = Route(*one.way, tracers.topic, PARTITION)
            checkpoint = Checkpoint(one.src_offset, one.dst_offset, one.seen_ms, Origin.TRACER)
            collector.learn(route, checkpoint)

    def _keep_minute(self, rows: Mapping[Table, Sequence[Row]], now: datetime) -> None:
        for table, some in rows.items():
            self._wait_for(table, some)
        self._told = NOTHING_TOLD
        self._next_minute = _floor(now)
        self._kept += 1
        try:
            self._rto = rto_by_group(self._drills.rows())
        except TableStoreError as error:
            _log.warning("%s", error)

    def _wait_for(self, table: Table, rows: Iterable[Row]) -> None:
        self._waiting[table] = [*self._waiting[table], *rows][-_WAITING_AT_MOST:]

    def _write(self) -> None:
        try:
            for table, rows in self._waiting.items():
                if rows:
                    self._stores[table].append(rows)
                    self._waiting[table] = []
            if self._kept >= _TIDY_AFTER:
                self._kept = 0
                for store in self._stores.values():
                    store.compact()
        except TableStoreError as error:
            _log.warning("nothing is kept: %s", error)

    def _remind(self, now: datetime) -> None:
        if now < self._remind_at:
            return
        self._remind_at = now + _REMIND_AFTER
        for one in self._findings.opened:
            self._tray.put(Finding(one, now, opens=True), now, kinds=("alertmanager",))


def _floor(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
