"""Minutes of recovery tables as a reader returns them, and view models made from them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pyarrow as pa

from fleetgauge_core import tables
from fleetgauge_dashboards.reader.recovery import (
    GROUP_MINUTE_COLUMNS,
    MIRROR_MINUTE_COLUMNS,
    PRODUCER_MINUTE_COLUMNS,
)
from fleetgauge_dashboards.views.freshness import DataAge
from fleetgauge_dashboards.views.groups import GroupReadiness
from fleetgauge_dashboards.views.mirrors import MirrorHealth, MirrorLag
from fleetgauge_dashboards.views.producers import ProducerStatus
from fleetgauge_dashboards.views.recovery_freshness import RecoveryFreshness
from tests.unit.dashboards.frames import START, frame

#: Half a minute after the end of START's minute.
NOW = START + timedelta(seconds=90)
UNTIL = START + timedelta(minutes=1)
CURRENT = RecoveryFreshness(UNTIL, timedelta(seconds=30), DataAge.FRESH)


def _frame(table: tables.Table, names: tuple[str, ...], rows: Iterable[dict[str, Any]]) -> pa.Table:
    return frame(table, names, [{name: row[name] for name in names} for row in rows])


def mirror_rows(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return _frame(tables.MIRROR_MINUTES, MIRROR_MINUTE_COLUMNS, rows)


def group_rows(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return _frame(tables.GROUP_MINUTES, GROUP_MINUTE_COLUMNS, rows)


def producer_rows(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return _frame(tables.PRODUCER_MINUTES, PRODUCER_MINUTE_COLUMNS, rows)


def mirror(source: str = "north", destination: str = "south", **changed: Any) -> MirrorLag:
    values: dict[str, Any] = {
        "until": UNTIL,
        "now": True,
        "state": MirrorHealth.FRESH,
        "behind_s_at_most": 14.2,
    }
    return MirrorLag(source, destination, **values | changed)


def group(group_id: str = "billing", **changed: Any) -> GroupReadiness:
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
    return GroupReadiness(**values | changed)


def producers(cluster_id: str = "south", **changed: Any) -> ProducerStatus:
    values: dict[str, Any] = {
        "vantage": "apps",
        "cluster_id": cluster_id,
        "until": UNTIL,
        "is_current": True,
        "sent": 12,
        "acknowledged": 12,
        "ack_p99_ms": 44,
        "records_per_s": 4_000.0,
        "capacity_records_per_s": 10_000.0,
    }
    return ProducerStatus(**values | changed)
