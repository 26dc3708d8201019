"""Minutes of recovery as a reader gives them, and what was made of them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pyarrow as pa

from fleetgauge_core import tables
from fleetgauge_dashboards.reader.recovery import GROUP_MINUTE, MIRROR_MINUTE, PRODUCER_MINUTE
from fleetgauge_dashboards.views.freshness import Age
from fleetgauge_dashboards.views.groups import GroupNow
from fleetgauge_dashboards.views.mirrors import MirrorNow, MirrorState
from fleetgauge_dashboards.views.producers import ProducersNow
from fleetgauge_dashboards.views.recovery_freshness import Told
from tests.unit.dashboards.frames import START, frame

#: Half a minute after the minute of START ended.
NOW = START + timedelta(seconds=90)
UNTIL = START + timedelta(minutes=1)
TOLD_NOW = Told(UNTIL, timedelta(seconds=30), Age.FRESH)


def _frame(table: tables.Table, names: tuple[str, ...], rows: Iterable[dict[str, Any]]) -> pa.Table:
    return frame(table, names, [{name: row[name] for name in names} for row in rows])


def mirror_rows(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return _frame(tables.MIRROR_MINUTES, MIRROR_MINUTE, rows)


def group_rows(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return _frame(tables.GROUP_MINUTES, GROUP_MINUTE, rows)


def producer_rows(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return _frame(tables.PRODUCER_MINUTES, PRODUCER_MINUTE, rows)


def mirror(source: str = "north", destination: str = "south", **changed: Any) -> MirrorNow:
    values: dict[str, Any] = {
        "until": UNTIL,
        "now": True,
        "state": MirrorState.FRESH,
        "behind_s_at_most": 14.2,
    }
    return MirrorNow(source, destination, **values | changed)


def group(group_id: str = "billing", **changed: Any) -> GroupNow:
    values: dict[str, Any] = {
        "active": "north",
        "passive": "south",
        "group_id": group_id,
        "until": UNTIL,
        "ready": True,
        "reasons": (),
        "replay": 140,
        "replay_at_most": 900,
        "lost_at_most": 480,
        "lost_s_at_most": 14.2,
        "rto_ms": 2_340,
        "since": START,
        "or_before": False,
    }
    return GroupNow(**values | changed)


def producers(cluster_id: str = "south", **changed: Any) -> ProducersNow:
    values: dict[str, Any] = {
        "vantage": "apps",
        "cluster_id": cluster_id,
        "until": UNTIL,
        "now": True,
        "sent": 12,
        "acknowledged": 12,
        "ack_p99_ms": 44,
        "records_per_s": 4_000.0,
        "capacity_records_per_s": 10_000.0,
    }
    return ProducersNow(**values | changed)
