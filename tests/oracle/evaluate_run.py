"""Evaluate a run: the oracle's cluster-weeks, computed from a lake's records and operations.

    python tests/oracle/evaluate_run.py LAKE --fleet fleet.yaml
    python tests/oracle/evaluate_run.py LAKE --fleet fleet.yaml --compare --clock 2026-04-08T00:00:00Z

LAKE is a lake or its table bronze/probe_minutes. Standard output has one JSON value. --compare compares it
with the latest revision of each row of gold/cluster_weeks. Exit status: 0 if all agree, 1 if any differ, 2 if
an input cannot be read.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fleetgauge_core.fleet import FleetFileError, load_fleet
from fleetgauge_core.tables import (
    ACTIONS,
    CHANGES,
    CLUSTER_WEEKS,
    CORRECTIONS,
    HEALTH_EVENTS,
    PROBE_MINUTES,
    Table,
)
from tests.oracle.compare import Difference, find_differences
from tests.oracle.oracle import Operations, Row, evaluate, read_settings

#: The map columns of a record, which Delta returns as lists of pairs.
MAPS = ("produce_failures", "consume_failures")


class UnreadableError(ValueError):
    """An input that cannot be read; the message is one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    try:
        settings = read_settings(load_fleet(options.fleet))
        lake = _lake(options.records)
        records = read_records(lake, options.taken_by)
        weeks = evaluate(records, settings, options.clock, read_operations(lake)).cluster_weeks
        report: Row = {"records": len(records), "clock": options.clock, "cluster_weeks": weeks}
        if options.compare:
            gold = latest_revisions(_rows(lake, CLUSTER_WEEKS))
            report["differences"] = [_as_json_row(difference) for difference in compare_weeks(weeks, gold)]
    except (FleetFileError, UnreadableError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(report, indent=2, default=_json))
    return 1 if report.get("differences") else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=Path, metavar="LAKE", help="a lake, or its bronze/probe_minutes")
    parser.add_argument("--fleet", type=Path, required=True, help="the fleet.yaml of the run")
    parser.add_argument("--compare", action="store_true", help="compare with gold/cluster_weeks")
    parser.add_argument(
        "--clock", type=_parse_time, default=datetime.now(UTC), help="the run's clock (default: now)"
    )
    parser.add_argument(
        "--taken-by", type=_parse_time, help="ignore records that were ingested later (default: none)"
    )
    return parser.parse_args(arguments)


def _parse_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text}: no time zone; append Z or a UTC offset")
    return moment


def _lake(path: Path) -> Path:
    """Return the lake, given the lake or its table of records."""
    table = Path(PROBE_MINUTES.path)
    path = path.resolve()
    return path.parents[len(table.parts) - 1] if path.parts[-len(table.parts) :] == table.parts else path


def read_records(lake: Path, taken_by: datetime | None = None) -> list[Row]:
    """Return the bronze rows as records, with maps as dicts."""
    rows = _rows(lake, PROBE_MINUTES)
    ingested = [row for row in rows if taken_by is None or row["ingested_at"] <= taken_by]
    return [row | {name: dict(row[name] or ()) for name in MAPS} for row in ingested]


def read_operations(lake: Path) -> Operations:
    """Return the lake's corrections, actions, findings and changes; none if a table does not exist."""
    rows = {
        table: tuple(_rows(lake, table)) if DeltaTable.is_deltatable(str(lake / table.path)) else ()
        for table in (CORRECTIONS, ACTIONS, HEALTH_EVENTS, CHANGES)
    }
    return Operations(rows[CORRECTIONS], rows[ACTIONS], rows[HEALTH_EVENTS], rows[CHANGES])


def _rows(lake: Path, table: Table) -> list[Row]:
    path = lake / table.path
    try:
        rows: list[Row] = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    except (DeltaError, OSError) as error:
        raise UnreadableError(
            f"{path}: not a Delta table that can be read: {' '.join(str(error).split())}"
        ) from error
    return rows


def latest_revisions(weeks: Iterable[Row]) -> list[Row]:
    """Return the row with the highest revision of each cluster's week."""
    ascending = sorted(weeks, key=lambda row: row["revision"])
    return list({(row["cluster_id"], row["week"]): row for row in ascending}.values())


def compare_weeks(expected: Iterable[Row], gold: Iterable[Row]) -> list[Difference]:
    """Return the differences, except in revision numbers, which records do not determine."""
    rows = [
        row | {"revision": 1, "revision_reason": "closed"} if row["revision"] > 1 else row for row in gold
    ]
    return find_differences(CLUSTER_WEEKS, expected, rows, key=("cluster_id", "week"))


def _as_json_row(difference: Difference) -> Row:
    cluster_id, week = difference.key
    return {
        "cluster_id": cluster_id,
        "week": week,
        "column": difference.column,
        "expected": difference.expected,
        "actual": difference.actual,
    }


def _json(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
