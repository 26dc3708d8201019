"""Build the rows of the minute tables: one per mirror, group, and vantage with cluster."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fleetgauge_core.fleet.recovery import Mirror, Recovery
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_operations.recovery.offsets.lag import measure_lag
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair, SyncVerdict
from fleetgauge_operations.recovery.tracers.plan.delays import MirrorDelay, TracerAcks

MinuteRow = dict[str, Any]


class EvaluationTime(NamedTuple):
    """``at`` is the time of the evaluation; ``minute`` is the start of the minute that it stands for."""

    at: datetime
    minute: datetime


def build_mirror_minute(
    mirror: Mirror,
    recovery: Recovery,
    state: ReplicationState,
    delay: MirrorDelay | None,
    records_per_s: float | None,
    reachable: Collection[str],
    time: EvaluationTime,
) -> MinuteRow:
    """Build a row of recovery/mirror_minutes.

    ``records_per_s`` is the rate into the source's mirrored topics; ``reachable`` are the clusters that
    answered the last inspection. Without tracers, or before the first one arrives, there is no estimate.
    """
    now_ms = round(time.at.timestamp() * 1000)
    histories = list_replicated_histories(mirror, recovery, state)
    lags = [measure_lag(history, now_ms) for history in histories]
    stalled_s = _measure_stall(histories, state, now_ms)
    at_most = _sum_known([lag.records_at_most if lag else None for lag in lags])
    late_s = delay.late_s if delay else None
    estimate = None if late_s is None or records_per_s is None else round(late_s * records_per_s)
    delays_ms = sorted(delay.delays_ms) if delay else []
    return {
        "source": mirror.source,
        "destination": mirror.destination,
        "minute": time.minute,
        "day": time.minute.date(),
        "partitions": len(histories),
        "idle": sum(lag is not None and lag.records_at_most == 0 for lag in lags),
        "behind_at_most": at_most,
        "behind_s_at_most": _max_known([lag.seconds_at_most if lag else None for lag in lags]),
        "behind": estimate if estimate is None or at_most is None else min(estimate, at_most),
        "behind_s": late_s,
        "silent_s": stalled_s,
        "fresh": stalled_s is not None and stalled_s <= recovery.limits.stale_s,
        "tracers": len(delays_ms),
        "tracer_p50_ms": quantile(50, delays_ms),
        "tracer_p99_ms": quantile(99, delays_ms),
        "looped": delay.looped if delay else 0,
        "source_answers": mirror.source in reachable,
        "destination_answers": mirror.destination in reachable,
    }


def list_replicated_histories(
    mirror: Mirror, recovery: Recovery, state: ReplicationState
) -> tuple[OffsetHistory, ...]:
    """Return the histories of all partitions that a mirror replicates, except the tracers' topic."""
    tracer_topic = recovery.tracers.topic if recovery.tracers else None
    return tuple(
        history
        for history in state.histories_between(mirror.source, mirror.destination)
        if history.route.topic != tracer_topic
    )


def _measure_stall(histories: Iterable[OffsetHistory], state: ReplicationState, now_ms: int) -> float | None:
    """Return the seconds since the last progress of the partition that has made none for longest.

    None if a partition's progress is unknown, or if there is no partition.
    """
    progress_ms = [state.last_progress_ms(history.route) for history in histories]
    known_ms = [at_ms for at_ms in progress_ms if at_ms is not None]
    return (now_ms - min(known_ms)) / 1000 if known_ms and len(known_ms) == len(progress_ms) else None


def build_group_minute(
    pair: ClusterPair, forecast: GroupForecast, rto_ms: int | None, time: EvaluationTime
) -> MinuteRow:
    """Build a row of recovery/group_minutes.

    ``rto_ms`` is the time from the decision to the first record in the group's last executed drill.
    """
    return {
        "active": pair.active,
        "passive": pair.passive,
        "group_id": forecast.group,
        "minute": time.minute,
        "day": time.minute.date(),
        "partitions": len(forecast.partitions),
        "ready": forecast.is_ready,
        "reasons": ",".join(forecast.reasons),
        "unbounded": sum(
            partition.decision.verdict is SyncVerdict.UNBOUNDED for partition in forecast.partitions
        ),
        "replay": forecast.replay,
        "replay_at_most": forecast.replay_at_most,
        "lost_at_most": forecast.lost_at_most,
        "lost_s_at_most": _max_known([partition.lost_s_at_most for partition in forecast.partitions]),
        "rto_ms": rto_ms,
    }


def build_producer_minute(
    vantage: str,
    cluster: str,
    acks: TracerAcks,
    records_per_s: float | None,
    capacity: float | None,
    time: EvaluationTime,
) -> MinuteRow:
    """Build a row of recovery/producer_minutes.

    ``records_per_s`` is the rate into the cluster's mirrored topics; ``capacity`` is its configured capacity
    in records per second.
    """
    latencies_ms = sorted(acks.latencies_ms)
    return {
        "vantage": vantage,
        "cluster_id": cluster,
        "minute": time.minute,
        "day": time.minute.date(),
        "sent": acks.sent,
        "acknowledged": len(latencies_ms),
        "ack_p50_ms": quantile(50, latencies_ms),
        "ack_p99_ms": quantile(99, latencies_ms),
        "records_per_s": records_per_s,
        "capacity_records_per_s": capacity,
    }


def latest_rto_by_group(drills: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], int]:
    """Return the recovery time in ms of each group's last executed drill, by active, passive and group."""
    rto_ms: dict[tuple[str, str, str], int] = {}
    for row in sorted(drills, key=lambda row: row["at"]):
        if row["executed"]:
            phases_ms = [row["decide_ms"], row["write_ms"], row["first_record_ms"]]
            rto_ms[row["active"], row["passive"], row["group_id"]] = sum(ms or 0 for ms in phases_ms)
    return rto_ms


def _sum_known(numbers: Sequence[int | None]) -> int | None:
    """Return the sum, or None if a number is unknown or there is none."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None


def _max_known(numbers: Sequence[float | None]) -> float | None:
    """Return the maximum, or None if a number is unknown or there is none."""
    known = [number for number in numbers if number is not None]
    return max(known) if known and len(known) == len(numbers) else None
