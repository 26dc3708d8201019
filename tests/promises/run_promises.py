"""Keys of the JSON and columns of the CSV that commands print when they are run on a small lake.

It takes seconds, so it is compared by tests/unit/promises and not by `make check`.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.runtime.cli import main
from fleetgauge_core.tables import ACTIONS, CORRECTIONS, QUARANTINE
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.plan.case import ActionCase
from tests import configuration_reference
from tests.browser import lake as minutes_lake
from tests.browser import recovery_lake
from tests.browser.lake import ORDERS, PAYMENTS, SEARCH, put
from tests.promises.key_paths import paths_of_value
from tests.promises.specimens import specimen
from tests.spark.broken import good_record
from tests.unit.operations.replay.sample_incidents import build_hang_pulses, build_incident

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
_REGIONS = {ORDERS: "eu", PAYMENTS: "us", SEARCH: "ap"}
_SPAN = ("--from", "2026-03-05T10:00:00Z", "--to", "2026-03-05T11:00:00Z", "--reason", "upgrade")
_CASE_OF_MAP = {"position": 6, "active": {"A": [[1, 3]]}, "passive": {"A": [[1, 1]]}, "passive_log": [0, 8]}

#: Command lines that begin with their name in the list; they run in the folder of the lake, in this order.
_WITH_JSON: Sequence[Sequence[str]] = (
    ("init", "--cluster", "orders", "--bootstrap", "orders:9092", "--output", "drafted.yaml"),
    ("probe acls",),
    ("validate", "every-key.yaml"),
    ("slo",),
    ("explain", ORDERS, "2026-03-02"),
    ("report", "2026-03-02"),
    ("compare", "--by", "region=eu,us"),
    ("correct add", "--cluster", ORDERS, *_SPAN, "--author", "who"),
    ("correct list",),
    ("quarantine list",),
    ("quarantine show", "topic/0/1"),
    ("lake status", "--clock", "2027-04-04T00:00:00Z"),
    ("lake expire", "--dry-run", "--clock", "2027-04-04T00:00:00Z"),
    ("mitigate history",),
    ("recover map", "--from-file", "case.json"),
    ("replay run", "hang.incident.gz"),
    ("simulate", "--to", "made", "--records", "files", "--minutes", "1", "--clusters", "1"),
)
_WITH_CSV = (("slo",), ("explain", ORDERS, "2026-03-02"), ("compare", "--by", "region=eu,us"))
#: Paths of objects whose keys are data.
_KEYED_BY_DATA = frozenset(
    {
        "clusters[].labels",
        "clusters[].metrics",
        "corrected",
        "definition_words",
        "objectives",
        "per_source",
        "recovery.primaries.services",
        "revisions[].changed",
        "samples[].brokers[].failures",
    }
)


def collect() -> Iterator[str]:
    with TemporaryDirectory() as folder, chdir(folder):
        write_inputs(Path(folder))
        for command, *arguments in _WITH_JSON:
            printed = json.loads(_run([*command.split(), *arguments, "--json"]))
            yield from (f"{command}: {path}" for path in paths_of_value(printed, _KEYED_BY_DATA))
        for command, *arguments in _WITH_CSV:
            header, *_ = _run([*command.split(), *arguments, "--csv"]).splitlines()
            yield from (f"{command} --csv: {column}" for column in header.split(","))


def _run(arguments: Sequence[str]) -> str:
    result = CliRunner().invoke(main, arguments)
    if result.exit_code != 0:
        raise RuntimeError(
            f"fleetgauge {' '.join(arguments)}: {result.exit_code}: {result.output}"
        ) from result.exception
    return result.stdout


def write_inputs(folder: Path) -> None:
    """Write fleet files, a lake, an incident and a case to the folder."""
    (folder / "fleet.yaml").write_text(json.dumps(_fleet()), encoding="utf-8")
    (folder / "every-key.yaml").write_text(_every_key(), encoding="utf-8")
    (folder / "case.json").write_text(json.dumps(_CASE_OF_MAP), encoding="utf-8")
    build_incident(build_hang_pulses()).write(folder / "hang.incident.gz")
    _write_lake(folder / "lake")


def _fleet() -> Any:
    clusters = [
        {"id": cluster, "bootstrap": f"{cluster}:9092", "region": region}
        for cluster, region in _REGIONS.items()
    ]
    return {"telemetry": {"bootstrap": "t:9092"}, "clusters": clusters, "lake": "./lake"}


def _every_key() -> str:
    """Return the fleet file with all keys from the reference."""
    *_, last = configuration_reference.reference().split("```yaml\n")
    return last.partition("```")[0]


def _write_lake(lake: Path) -> None:
    minutes_lake.write(lake, NOW)
    recovery_lake.write(lake, NOW)
    put(lake, CORRECTIONS, [])
    put(lake, ACTIONS, [])
    AuditLog(str(lake)).add_case(replace(specimen(ActionCase), cluster_id=ORDERS, began=NOW))
    quarantined = {"source": "topic/0/1", "reason": "unknown_cluster", "detail": "orders", "ingested_at": NOW}
    put(lake, QUARANTINE, [quarantined | {"value": PROBE_MINUTE.encode(good_record(1, NOW))}])
