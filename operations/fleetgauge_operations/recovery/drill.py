"""Drill a failover with real groups: write their offsets, read from them, and compare with the forecast."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.recovery.group_offset_sync import GroupOffsetSync, GroupSyncPlan
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.forecast import GroupForecast, forecast_group
from fleetgauge_operations.recovery.record_diff import MAX_COMPARED, count_fingerprints, read_records


@dataclass(frozen=True, slots=True)
class DrillRun:
    """What an executed drill measured; ``replayed`` and ``missing`` are None if too much to compare.

    ``replayed`` counts the records from the resume offset on that the group has consumed already.
    ``missing`` counts the records that the group has not consumed and that do not lie there: they are not
    replicated yet, or lost.
    """

    wrote: bool
    decide_s: float
    write_s: float
    first_record_s: float | None
    """None if there was no record to read."""
    replayed: int | None
    missing: int | None


@dataclass(frozen=True, slots=True)
class GroupDrill:
    """The drill of one group; ``run`` is None if it was not executed."""

    forecast: GroupForecast
    run: DrillRun | None = None


@dataclass(frozen=True, slots=True)
class DrillReport:
    """The drill of a failover from the active to the passive cluster, requested ``at`` that time."""

    drill_id: str
    at: datetime
    active: str
    passive: str
    author: str
    groups: tuple[GroupDrill, ...]

    @property
    def is_ready(self) -> bool:
        """Whether there is a group, and all groups are ready."""
        return bool(self.groups) and all(drill.forecast.is_ready for drill in self.groups)


class DrillExecutor:
    """Executes drills between one pair of clusters. All methods raise KafkaUnavailableError."""

    def __init__(
        self,
        fleet: Fleet,
        group_sync: GroupOffsetSync,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fleet = fleet
        self._group_sync = group_sync
        self._active, self._passive = (
            fleet.cluster(cluster).access for cluster in (group_sync.pair.active, group_sync.pair.passive)
        )
        self._monotonic = monotonic

    def forecast_groups(self, state: ReplicationState, now_ms: int) -> tuple[GroupDrill, ...]:
        """Forecast a failover of all groups, without writing anything."""
        return tuple(
            GroupDrill(forecast_failover(self._fleet, plan, state, now_ms))
            for plan in self._group_sync.plan_groups(state)
        )

    def drill_group(self, group: str, state: ReplicationState, now_ms: int) -> GroupDrill | None:
        """Write a ready group's offsets in the passive cluster and read from them, committing nothing more.

        Returns None if the group has committed no offsets.
        """
        started = self._monotonic()
        plan = next(self._group_sync.plan_groups(state, group), None)
        if plan is None:
            return None
        forecast = forecast_failover(self._fleet, plan, state, now_ms)
        decided = self._monotonic()
        if not forecast.is_ready:
            return GroupDrill(forecast)
        applied = self._group_sync.apply(plan)
        written = self._monotonic()
        if not applied.is_ok:
            return GroupDrill(forecast_failover(self._fleet, applied, state, now_ms))
        has_record = self._read_first_record(plan)
        first_record_s = self._monotonic() - written if has_record else None
        replayed, missing = self._compare(plan)
        run = DrillRun(
            applied.was_applied, decided - started, written - decided, first_record_s, replayed, missing
        )
        return GroupDrill(forecast, run)

    def _read_first_record(self, plan: GroupSyncPlan) -> bool:
        for decision in plan.decisions:
            resume, passive = decision.resume, decision.passive
            if resume is not None and passive.log and resume < passive.log.end:
                partition = TopicPartition(passive.topic, passive.partition)
                records = read_records(self._passive, partition, resume, resume + 1)
                return next(records, None) is not None
        return False

    def _compare(self, plan: GroupSyncPlan) -> tuple[int | None, int | None]:
        """Return how many records are replayed and how many are missing."""
        replayed = missing = compared = 0
        for decision in plan.decisions:
            position, passive = decision.position, decision.passive
            if decision.resume is None or passive.log is None:
                continue
            compared += max(position.end - position.committed, passive.log.end - decision.resume)
            if compared > MAX_COMPARED:
                return None, None
            active_partition = TopicPartition(position.topic, position.partition)
            passive_partition = TopicPartition(passive.topic, passive.partition)
            unconsumed = count_fingerprints(
                read_records(self._active, active_partition, position.committed, position.end)
            )
            to_read = count_fingerprints(
                read_records(self._passive, passive_partition, decision.resume, passive.log.end)
            )
            replayed += (to_read - unconsumed).total()
            missing += (unconsumed - to_read).total()
        return replayed, missing


def forecast_failover(
    fleet: Fleet, plan: GroupSyncPlan, state: ReplicationState, now_ms: int
) -> GroupForecast:
    """Forecast a failover of a group if its active cluster fails with its whole region."""
    failing = clusters_in_region_of(fleet, plan.pair.active)
    return forecast_group(plan.group, plan.decisions, failing, fleet.recovery.limits, state, now_ms)


def clusters_in_region_of(fleet: Fleet, cluster_id: str) -> frozenset[str]:
    """Return the clusters of a cluster's region, itself included."""
    region = fleet.cluster(cluster_id).region
    neighbours = {cluster.id for cluster in fleet.clusters if region is not None and cluster.region == region}
    return frozenset({cluster_id, *neighbours})


def drill_rows(report: DrillReport) -> Sequence[dict[str, object]]:
    """Return a drill as rows of recovery/drills, one per group."""
    return [_build_row(report, drill) for drill in report.groups]


def _build_row(report: DrillReport, drill: GroupDrill) -> dict[str, object]:
    forecast, run = drill.forecast, drill.run
    return {
        "drill_id": report.drill_id,
        "group_id": forecast.group,
        "at": report.at,
        "active": report.active,
        "passive": report.passive,
        "author": report.author,
        "executed": run is not None,
        "ready": forecast.is_ready,
        "reasons": ",".join(forecast.reasons),
        "partitions": len(forecast.partitions),
        "replay_forecast": forecast.replay,
        "replay_at_most": forecast.replay_at_most,
        "lost_at_most": forecast.lost_at_most,
        "replayed": run.replayed if run else None,
        "missing": run.missing if run else None,
        "decide_ms": _to_ms(run.decide_s) if run else None,
        "write_ms": _to_ms(run.write_s) if run else None,
        "first_record_ms": _to_ms(run.first_record_s) if run and run.first_record_s is not None else None,
    }


def _to_ms(seconds: float) -> int:
    return round(1000 * seconds)
