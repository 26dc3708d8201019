"""Keys of the JSON in tables, topics and files, which scripts and later versions read."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fleetgauge_core.detection import BURN_CONDITIONS, FindingSubject, HealthCondition
from fleetgauge_core.detection.burn_fold import _burn_evidence as evidence_of_alerts
from fleetgauge_core.detection.fleet_health import ClusterHealth
from fleetgauge_core.fleet import Recovery
from fleetgauge_core.kafka.demotion_marks import _DemotionMark as DemotionMark
from fleetgauge_core.slo.burn import BurnAlert
from fleetgauge_core.tables import (
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    ColumnType,
    Table,
)
from fleetgauge_dashboards.views.alert_remarks import build_acknowledgement_row, build_judgement_row
from fleetgauge_dashboards.views.alerts import HealthAlert
from fleetgauge_operations.actions.audit_log import _case_row as row_of_case
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation.plan.demotion import encode_orders
from fleetgauge_operations.mitigation.plan.restarts import encode_throttles
from fleetgauge_operations.recovery.plan.map_case import _KEYS as MAP_KEYS
from fleetgauge_operations.recovery.primaries.plan.primary_lease import _EXAMPLE as CLAIM
from fleetgauge_operations.recovery.primaries.plan.primary_lease import parse_lease
from fleetgauge_operations.recovery.primaries.promote_output import promotion_row
from fleetgauge_operations.recovery.primaries.promotion_executor import PromotionResult
from fleetgauge_operations.recovery.readiness.finding_notification import finding_row
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    check_group_minutes,
    check_headroom_minutes,
    check_mirror_minute,
    check_producer_minutes,
)
from fleetgauge_operations.recovery.readiness.plan.findings import RecoveryFinding
from fleetgauge_operations.recovery.tracers.plan.tracer import Tracer
from fleetgauge_operations.watch.state_store import BurnRecord, DeliveryRecord, LatencyBaselineRecord
from fleetgauge_pipelines.simulation import SimulatedFleet
from tests.promises.key_paths import NONE, Paths, paths_of_value
from tests.promises.specimens import specimen
from tests.unit.operations.replay.sample_incidents import build_hang_pulses, build_incident

_VALUES: Mapping[ColumnType, Any] = {
    ColumnType.STRING: "*",
    ColumnType.BOOLEAN: False,
    ColumnType.INT: 2,
    ColumnType.LONG: 2,
    ColumnType.DOUBLE: 1e9,
    ColumnType.TIMESTAMP: specimen(datetime),
    ColumnType.DATE: specimen(datetime).date(),
}
_TOPICS = {"learnt": LatencyBaselineRecord, "told": DeliveryRecord, "spent": BurnRecord}


def collect() -> Iterator[str]:
    documents = {
        **_collect_actions(),
        **_collect_findings(),
        **_collect_topics(),
        **_collect_files(),
    }
    for name, paths in documents.items():
        yield from (f"{name}: {path}" for path in paths)
    yield from (f"key of watch_state: {specimen(kind).key.partition('/')[0]}" for kind in _TOPICS.values())


def _collect_actions() -> Mapping[str, Paths]:
    """Return the key paths of ``detail`` in ops/actions by the command or action that writes it."""
    alert, now = specimen(HealthAlert), specimen(datetime)
    rows = {
        "mitigate": row_of_case(
            replace(specimen(ActionCase), plan=encode_orders({}) | encode_throttles({"*": "1:2"}))
        ),
        "acknowledge": build_acknowledgement_row(alert, "who", now, "id"),
        "judge": build_judgement_row(
            alert, specimen(build_judgement_row.__annotations__["judgement"]), "who", now, "id"
        ),
        "promote": promotion_row(specimen(PromotionResult), (), "who", "id", now, now),
    }
    return {f"ops/actions.detail of {writer}": _json(row["detail"]) for writer, row in rows.items()}


def _collect_findings() -> Mapping[str, Paths]:
    """Return the key paths of ``evidence`` in findings of the watch and of `recover run`."""
    state, at = specimen(ClusterHealth), specimen(datetime)
    states = {
        chain: paths_of_value(state.evidence(FindingSubject("*", chain, 1, "*", 1), state, at))
        for chain in set(HealthCondition) - BURN_CONDITIONS
    }
    burns = {
        chain: paths_of_value(evidence_of_alerts([specimen(BurnAlert)]), ("windows",))
        for chain in BURN_CONDITIONS
    }
    return {f"ops/health_events.evidence of {chain}": paths for chain, paths in (states | burns).items()} | {
        f"recovery/findings.evidence of {condition.key.kind}": _json(
            finding_row(RecoveryFinding(condition, at, True))["evidence"]
        )
        for condition in _conditions()
    }


def _conditions() -> Iterator[Any]:
    """Yield the conditions of the worst possible minutes."""
    mirror = _row(MIRROR_MINUTES)
    yield from check_mirror_minute(mirror, Recovery())
    yield from check_group_minutes("a", "p", [_row(GROUP_MINUTES)], ())
    yield from check_producer_minutes([_row(PRODUCER_MINUTES) | {"acknowledged": 0}])
    rates = {"records_per_s": 2.0, "capacity_records_per_s": 1.0}
    yield from check_headroom_minutes([{"cluster_id": cluster, **rates} for cluster in ("a", "b")])


def _row(table: Table) -> dict[str, Any]:
    return {column.name: _VALUES[column.type] for column in table.columns}


def _collect_topics() -> Mapping[str, Paths]:
    states = {f"watch_state, {name}": specimen(kind).model_dump() for name, kind in _TOPICS.items()}
    documents = states | {"demotions": specimen(DemotionMark).model_dump(), "header of a tracer": _tracer()}
    return {name: paths_of_value(document) for name, document in documents.items()}


def _tracer() -> Any:
    ((_, value),) = specimen(Tracer).headers.items()
    return json.loads(value)


def _collect_files() -> Mapping[str, Paths]:
    """Return the key paths of files: a lease and a map case are read, the others are written."""
    parse_lease(CLAIM.encode(), "example")
    ledger = SimulatedFleet(1, 1, specimen(datetime), 7 * 24 * 60, 9).ledger()
    return {
        "claim of a primary": _json(CLAIM),
        "case of recover map": frozenset(MAP_KEYS),
        "ledger.json of simulate": paths_of_value(ledger),
        "incident of replay": _incident(),
    }


def _incident() -> Paths:
    with TemporaryDirectory() as folder:
        path = Path(folder, "file.incident.gz")
        build_incident(build_hang_pulses()).write(path)
        lines = gzip.decompress(path.read_bytes()).splitlines()
    return NONE.union(*map(_json, lines))


def _json(text: str | bytes) -> Paths:
    return paths_of_value(json.loads(text))
