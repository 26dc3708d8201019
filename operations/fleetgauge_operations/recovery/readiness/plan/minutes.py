"""A minute of a mirror, a group and a vantage, as the tables keep them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fleetgauge_core.fleet.recovery import Mirror, Recovery
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_operations.recovery.offsets.lag import lag_of
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import Pair, Verdict
from fleetgauge_operations.recovery.tracers.plan.delays import Acks, Delay

Row = dict[str, Any]


class Moment(NamedTuple):
    """``at``: when it is looked at; ``minute``: which minute that is the end of."""

    at: datetime
    minute: datetime


def mirror_minute(
    mirror: Mirror,
    recovery: Recovery,
    known: Known,
    delay: Delay | None,
    records_per_s: float | None,
    answering: Collection[str],
    moment: Moment,
) -> Row:
    """``records_per_s``: into the source; ``answering``: the clusters that did at the last look.

    Without tracers, or before one came, there is no estimate.
    """
    now_ms = round(moment.at.timestamp() * 1000)
    histories = carried(mirror, recovery, known)
    lags = [lag_of(one, now_ms) for one in histories]
    silent_s = _silent_s(histories, known, now_ms)
    at_most = _sum([lag.records_at_most if lag else None for lag in lags])
    late_s = delay.late_s if delay else None
    estimate = None if late_s is None or records_per_s is None else round(late_s * records_per_s)
    took = sorted(delay.took_ms) if delay else []
    return {
        "source": mirror.source,
        "destination": mirror.destination,
        "minute": moment.minute,
        "day": moment.minute.date(),
        "partitions": len(histories),
        "idle": sum(lag is not None and lag.records_at_most == 0 for lag in lags),
        "behind_at_most": at_most,
        "behind_s_at_most": _max([lag.seconds_at_most if lag else None for lag in lags]),
        "behind": estimate if estimate is None or at_most is None else min(estimate, at_most),
        "behind_s": late_s,
        "silent_s": silent_s,
        "fresh": silent_s is not None and silent_s <= recovery.limits.stale_s,
        "tracers": len(took),
        "tracer_p50_ms": quantile(50, took),
        "tracer_p99_ms": quantile(99, took),
        "looped": delay.looped if delay else 0,
        "source_answers": mirror.source in answering,
        "destination_answers": mirror.destination in answering,
    }


def carried(mirror: Mirror, recovery: Recovery, known: Known) -> tuple[History, ...]:
    """Of each partition that it mirrors but our own tracers'."""
    own = recovery.tracers.topic if recovery.tracers else None
    return tuple(one for one in known.between(mirror.source, mirror.destination) if one.route.topic != own)


def _silent_s(histories: Iterable[History], known: Known, now_ms: int) -> float | None:
    """Of the partition furthest back; None where of one nothing was ever heard, or there is none."""
    heard = [known.kept_up_ms(one.route) for one in histories]
    since = [one for one in heard if one is not None]
    return (now_ms - min(since)) / 1000 if since and len(since) == len(heard) else None


def group_minute(pair: Pair, found: GroupForecast, rto_ms: int | None, moment: Moment) -> Row:
    """``rto_ms``: what a drill took from the decision to the first record."""
    late_s = [one.lost_s_at_most for one in found.partitions]
    return {
        "active": pair.active,
        "passive": pair.passive,
        "group_id": found.group,
        "minute": moment.minute,
        "day": moment.minute.date(),
        "partitions": len(found.partitions),
        "ready": found.is_ready,
        "reasons": ",".join(found.reasons),
        "unbounded": sum(one.decision.verdict is Verdict.UNBOUNDED for one in found.partitions),
        "replay": found.replay,
        "replay_at_most": found.replay_at_most,
        "lost_at_most": found.lost_at_most,
        "lost_s_at_most": _max(late_s),
        "rto_ms": rto_ms,
    }


def producer_minute(
    vantage: str,
    cluster: str,
    acks: Acks,
    records_per_s: float | None,
    capacity: float | None,
    moment: Moment,
) -> Row:
    """``records_per_s``: into its mirrored topics; ``capacity``: as many as it is known to take."""
    took = sorted(acks.took_ms)
    return {
        "vantage": vantage,
        "cluster_id": cluster,
        "minute": moment.minute,
        "day": moment.minute.date(),
        "sent": acks.sent,
        "acknowledged": len(took),
        "ack_p50_ms": quantile(50, took),
        "ack_p99_ms": quantile(99, took),
        "records_per_s": records_per_s,
        "capacity_records_per_s": capacity,
    }


def rto_by_group(drills: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], int]:
    """By active, passive and group, what each group's last drill took that was executed, in ms."""
    found: dict[tuple[str, str, str], int] = {}
    for row in sorted(drills, key=lambda row: row["at"]):
        if row["executed"]:
            took = [row["decide_ms"], row["write_ms"], row["first_record_ms"]]
            found[row["active"], row["passive"], row["group_id"]] = sum(one or 0 for one in took)
    return found


def _sum(of: Sequence[int | None]) -> int | None:
    """None where one of them is not known, or there is none."""
    known = [one for one in of if one is not None]
    return sum(known) if known and len(known) == len(of) else None


def _max(of: Sequence[float | None]) -> float | None:
    """Likewise."""
    known = [one for one in of if one is not None]
    return max(known) if known and len(known) == len(of) else None
