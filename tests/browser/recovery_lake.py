"""Writes the recovery tables of two regions, each with a cluster and an aggregate of both.

Groups of ``north-all`` fail over to ``south-all``: two of three could, but not ``billing`` for the last
twelve minutes, as the mirror from ``south`` has stalled. In the other direction one group is unknown.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fleetgauge_core import tables
from tests.browser.lake import put

MINUTE = timedelta(minutes=1)
NORTH, SOUTH, NORTH_ALL, SOUTH_ALL = "north", "south", "north-all", "south-all"
REGIONS = {NORTH: "eu-north", NORTH_ALL: "eu-north", SOUTH: "eu-south", SOUTH_ALL: "eu-south"}
MIRRORS = ((NORTH, NORTH_ALL), (NORTH, SOUTH_ALL), (SOUTH, NORTH_ALL), (SOUTH, SOUTH_ALL))
PAIRS = ((NORTH_ALL, SOUTH_ALL), (SOUTH_ALL, NORTH_ALL))

OBJECTIVE_S = 300.0
#: Minutes before now: the length of the stall, and the minutes without rows.
STALE_FOR = 12
GAP = range(60, 90)
HOURS = 26

Row = dict[str, Any]


def write(root: Path, now: datetime) -> None:
    """Write the tables as of ``now``; the newest minute is the last complete one."""
    now = now.replace(second=0, microsecond=0)
    put(root, tables.MIRROR_MINUTES, _mirror_minutes(now))
    put(root, tables.GROUP_MINUTES, _group_minutes(now))
    put(root, tables.PRODUCER_MINUTES, _producer_minutes(now))
    put(root, tables.RECOVERY_FINDINGS, _findings(now))
    put(root, tables.DRILLS, _drills(now))
    put(root, tables.RECOVERY_WEEKS, _weeks(now))


def mirror_minute(source: str, destination: str, minute: datetime, **changed: Any) -> Row:
    values: Row = {
        "source": source,
        "destination": destination,
        "minute": minute,
        "day": minute.date(),
        "partitions": 12,
        "idle": 2,
        "behind_at_most": 480,
        "behind_s_at_most": 14.2,
        "behind": 21,
        "behind_s": 0.62,
        "silent_s": 8.0,
        "fresh": True,
        "tracers": 12,
        "tracer_p50_ms": 310,
        "tracer_p99_ms": 620,
        "looped": 0,
        "source_answers": True,
        "destination_answers": True,
    }
    return values | changed


def group_minute(active: str, passive: str, group_id: str, minute: datetime, **changed: Any) -> Row:
    values: Row = {
        "active": active,
        "passive": passive,
        "group_id": group_id,
        "minute": minute,
        "day": minute.date(),
        "partitions": 12,
        "ready": True,
        "reasons": "",
        "unbounded": 0,
        "replay": 140,
        "replay_at_most": 900,
        "lost_at_most": 480,
        "lost_s_at_most": 14.2,
        "rto_ms": 2_340,
    }
    return values | changed


def producer_minute(cluster_id: str, minute: datetime, **changed: Any) -> Row:
    values: Row = {
        "vantage": "north-apps",
        "cluster_id": cluster_id,
        "minute": minute,
        "day": minute.date(),
        "sent": 12,
        "acknowledged": 12,
        "ack_p50_ms": 21,
        "ack_p99_ms": 44,
        "records_per_s": 4_000.0,
        "capacity_records_per_s": 10_000.0,
    }
    return values | changed


def drill(at: datetime, group_id: str, **changed: Any) -> Row:
    values: Row = {
        "drill_id": f"{at:%Y%m%d%H%M}",
        "group_id": group_id,
        "at": at,
        "active": NORTH_ALL,
        "passive": SOUTH_ALL,
        "author": "ada",
        "executed": True,
        "ready": True,
        "reasons": "",
        "partitions": 12,
        "replay_forecast": 140,
        "replay_at_most": 900,
        "lost_at_most": 480,
        "replayed": 137,
        "missing": 0,
        "decide_ms": 420,
        "write_ms": 870,
        "first_record_ms": 1_050,
    }
    return values | changed


def finding(at: datetime, kind: str, cluster_id: str, other_id: str = "", **changed: Any) -> Row:
    values: Row = {
        "fingerprint": f"{kind}/{cluster_id}/{other_id}",
        "at": at,
        "opens": True,
        "kind": kind,
        "severity": "ticket",
        "cluster_id": cluster_id,
        "other_id": other_id,
        "subject": "",
        "summary": f"{kind} of {cluster_id}",
        "evidence": "{}",
    }
    return values | changed


def week_row(week: Any, metric: str, scope: str, subject: str = "", **changed: Any) -> Row:
    values: Row = {"week": week, "metric": metric, "scope": scope, "subject": subject, "closed": True}
    return dict.fromkeys(tables.RECOVERY_WEEKS.column_names) | values | changed


def _mirror_minutes(now: datetime) -> Iterator[Row]:
    for ago in range(HOURS * 60, 0, -1):
        if ago in GAP:
            continue
        minute = now - ago * MINUTE
        for place, (source, destination) in enumerate(MIRRORS):
            wave = (ago * (3 + place) % 47) / 10
            row = mirror_minute(source, destination, minute, behind_s_at_most=6.0 + 3 * place + wave)
            if (source, destination) == (SOUTH, SOUTH_ALL) and ago <= STALE_FOR:
                late_s = 60.0 * (STALE_FOR - ago + 1)
                row |= {"fresh": ago > STALE_FOR - 2, "silent_s": late_s, "behind_s_at_most": late_s + 10}
                row |= {"behind_at_most": round(late_s * 40), "behind": None, "behind_s": None}
            yield row


def _group_minutes(now: datetime) -> Iterator[Row]:
    for ago in range(HOURS * 60, 0, -1):
        if ago in GAP:
            continue
        minute = now - ago * MINUTE
        billing: Row = {"replay_at_most": 4_100, "lost_at_most": 1_900}
        if ago <= STALE_FOR:
            billing = {
                "ready": False,
                "reasons": "stale,loss",
                "lost_at_most": 40 * 60 * STALE_FOR,
                "lost_s_at_most": 730.0,
            }
        yield group_minute(NORTH_ALL, SOUTH_ALL, "billing", minute, **billing)
        yield group_minute(NORTH_ALL, SOUTH_ALL, "orders-checkout", minute)
        yield group_minute(NORTH_ALL, SOUTH_ALL, "orders-mail", minute, rto_ms=None, replay_at_most=120)
        yield group_minute(SOUTH_ALL, NORTH_ALL, "stock", minute, rto_ms=None)
        unknown: Row = {
            "ready": None,
            "replay": None,
            "replay_at_most": None,
            "lost_at_most": None,
            "rto_ms": None,
        }
        yield group_minute(SOUTH_ALL, NORTH_ALL, "returns", minute, **unknown)


def _producer_minutes(now: datetime) -> Iterable[Row]:
    for ago in range(180, 0, -1):
        minute = now - ago * MINUTE
        yield producer_minute(NORTH, minute)
        yield producer_minute(SOUTH, minute, records_per_s=2_500.0, acknowledged=11, ack_p99_ms=210)


def _findings(now: datetime) -> Iterable[Row]:
    stale = finding(
        now - (STALE_FOR - 3) * MINUTE,
        "MIRROR_STALE",
        SOUTH,
        SOUTH_ALL,
        summary=f"the mirror from {SOUTH} to {SOUTH_ALL} stands still",
    )
    behind = finding(
        now - 5 * MINUTE,
        "MIRROR_BEHIND",
        SOUTH,
        SOUTH_ALL,
        severity="page",
        summary=f"the mirror from {SOUTH} to {SOUTH_ALL} is 430 s behind, beyond 300 s",
    )
    over = finding(now - timedelta(hours=9), "PRODUCERS_CUT_OFF", SOUTH)
    return [stale, behind, over, over | {"at": now - timedelta(hours=8), "opens": False}]


def _drills(now: datetime) -> Iterator[Row]:
    tried = now - timedelta(days=2, hours=3)
    yield drill(tried, "billing", replay_forecast=350, replayed=352, missing=3)
    yield drill(tried, "orders-checkout")
    forecast = dict.fromkeys(("replayed", "missing", "decide_ms", "write_ms", "first_record_ms"))
    for days in range(3, 14):
        at = now - timedelta(days=days)
        not_ready = {"ready": False, "reasons": "connected"} if days == 5 else {}
        for group in ("billing", "orders-checkout"):
            yield drill(at, group, executed=False, author="cron", **forecast, **not_ready)


def _weeks(now: datetime) -> Iterator[Row]:
    newest = now.date() - timedelta(days=now.weekday())
    for back in range(3):
        week, closed = newest - timedelta(days=7 * back), back > 0
        for metric, p99 in (
            ("rpo_s", 212.0),
            ("rpo_s_estimate", 2.4),
            ("rpo_records", 8_400.0),
            ("readiness", 0.9912),
        ):
            over: Row = {
                "median": p99 / 2,
                "p90": p99 * 0.9,
                "p99": p99,
                "subjects": 4,
                "subjects_excluded": 1,
            }
            if metric == "readiness":
                over |= {"median": 1.0, "p90": 0.997, "p99": 0.9912}
            yield week_row(week, metric, "fleet", closed=closed, **over)
        for source, destination in MIRRORS:
            missed = back == 1 and (source, destination) == (SOUTH, SOUTH_ALL)
            value = 412.0 if missed else 21.5
            yield week_row(
                week,
                "rpo_s",
                "mirror",
                f"{source} to {destination}",
                value=value,
                objective=OBJECTIVE_S,
                met=value <= OBJECTIVE_S,
                coverage=0.998,
                closed=closed,
            )
        ready: Row = {"value": 0.982 if back == 1 else 0.9991, "objective": 0.99, "met": back != 1}
        yield week_row(
            week,
            "readiness",
            "group",
            f"{NORTH_ALL} to {SOUTH_ALL}: billing",
            coverage=0.998,
            closed=closed,
            **ready,
        )
