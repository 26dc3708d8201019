"""Judge a run: the cluster-weeks as the oracle sees them, from what a lake holds of records and operations.

    python tests/oracle/evaluate_run.py LAKE --fleet fleet.yaml
    python tests/oracle/evaluate_run.py LAKE --fleet fleet.yaml --compare --clock 2026-04-08T00:00:00Z

LAKE is a lake or its table bronze/probe_minutes. Standard output carries one
JSON value. With --compare the latest revision of each row of
gold/cluster_weeks is held against it; exit 0 if they agree, 1 if any differ,
2 if something cannot be read.
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

from fleetgauge_core.fleet import FleetFileError, load
from fleetgauge_core.tables import (
    ACTIONS,
    CLUSTER_WEEKS,
    CORRECTIONS,
    HEALTH_EVENTS,
    PROBE_MINUTES,
    Table,
)
from tests.oracle.compare import Difference, differences
from tests.oracle.oracle import Operations, Row, evaluate, settings_of

#: From the record, what the rules read; the maps come as pairs.
MAPS = ("produce_failures", "consume_failures")


class UnreadableError(ValueError):
    """An input that is not what it should be; its text is one line for a person."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    try:
        settings = settings_of(load(options.fleet))
        lake = _lake(options.records)
        records = _records(lake, options.taken_by)
        weeks = evaluate(records, settings, options.clock, _operations(lake)).cluster_weeks
        report: Row = {"records": len(records), "clock": options.clock, "cluster_weeks": weeks}
        if options.compare:
            gold = latest_revisions(_rows(lake, CLUSTER_WEEKS))
            report["differences"] = [_told(one) for one in compare_weeks(weeks, gold)]
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
    parser.add_argument("--compare", action="store_true", help="hold gold/cluster_weeks against it")
    parser.add_argument(
        "--clock", type=_moment, default=datetime.now(UTC), help="the run's clock (default: now)"
    )
    parser.add_argument(
        "--taken-by", type=_moment, help="leave out records that were taken later (default: none)"
    )
    return parser.parse_args(arguments)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} has no zone; end it with Z or an offset")
    return moment


def _lake(given: Path) -> Path:
    """The lake itself, whether it was named or its table of records."""
    table = Path(PROBE_MINUTES.path)
    given = given.resolve()
    return given.parents[len(table.parts) - 1] if given.parts[-len(table.parts) :] == table.parts else given


def _records(lake: Path, taken_by: datetime | None) -> list[Row]:
    """Bronze rows as records: maps as dicts, minutes aware."""
    rows = _rows(lake, PROBE_MINUTES)
    taken = [row for row in rows if taken_by is None or row["ingested_at"] <= taken_by]
    return [row | {name: dict(row[name] or ()) for name in MAPS} for row in taken]


def _operations(lake: Path) -> Operations:
    """What the lake says of corrections, actions and findings; nothing where it has no such table."""
    there = {
        table: tuple(_rows(lake, table)) if DeltaTable.is_deltatable(str(lake / table.path)) else ()
        for table in (CORRECTIONS, ACTIONS, HEALTH_EVENTS)
    }
    return Operations(there[CORRECTIONS], there[ACTIONS], there[HEALTH_EVENTS])


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
    """Of each cluster's week the row with the highest revision."""
    ascending = sorted(weeks, key=lambda row: row["revision"])
    return list({(row["cluster_id"], row["week"]): row for row in ascending}.values())


def compare_weeks(expected: Iterable[Row], gold: Iterable[Row]) -> list[Difference]:
    """Revisions after the first hold the same levels for a reason that records do not tell: not compared."""
    told = [
        row | {"revision": 1, "revision_reason": "closed"} if row["revision"] > 1 else row for row in gold
    ]
    return differences(CLUSTER_WEEKS, expected, told, key=("cluster_id", "week"))


def _told(difference: Difference) -> Row:
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
