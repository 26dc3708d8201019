"""What the commands of `fleetgauge recover` do."""

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleetgauge_core.kafka import TopicChangeReporter
from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.runtime.cli import InputError, ListenAddress, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.logs import configure_logging
from fleetgauge_core.runtime.steady_clock import SteadyClock, read_wall_clock
from fleetgauge_core.runtime.supervision import request_shutdown_on_error, supervise_process
from fleetgauge_core.tables import ACTIONS, DRILLS
from fleetgauge_operations.notify.fleet_faults import FleetFaults, load_reported_fleet
from fleetgauge_operations.recovery.cli_output import (
    drill_document,
    failback_document,
    format_drill,
    format_failback,
    format_mapping,
    format_plan,
    plan_document,
)
from fleetgauge_operations.recovery.controller import RecoveryController
from fleetgauge_operations.recovery.drill import drill_rows
from fleetgauge_operations.recovery.failback_inspection import FailbackInspection
from fleetgauge_operations.recovery.group_offset_sync import GroupSyncPlan
from fleetgauge_operations.recovery.metrics import RecoveryMetrics
from fleetgauge_operations.recovery.offsets.mapping_rule import MappingRule
from fleetgauge_operations.recovery.plan.map_case import (
    MappingCase,
    MappingCaseError,
    map_document,
    parse_case,
)
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair, SyncVerdict
from fleetgauge_operations.recovery.primaries.primary_conditions import PrimaryMonitor
from fleetgauge_operations.recovery.primaries.promote_output import (
    format_promotion,
    promotion_document,
    promotion_row,
)
from fleetgauge_operations.recovery.primaries.promotion_context import create_promotion_context
from fleetgauge_operations.recovery.primaries.promotion_executor import PromotionExecutor
from fleetgauge_operations.recovery.readiness.tracker import ReadinessTracker
from fleetgauge_operations.recovery.recovery_context import (
    SyncPlans,
    list_mirrored_accesses,
    open_recovery,
    run_tracers,
    start_recovery,
)

#: Maximum time between heartbeats: an inspection of a hundred mirrors, one of them unreachable.
_HEARTBEAT_TIMEOUT_S = 900
#: A round over all mirrors and groups is completed.
_SHUTDOWN_DEADLINE_S = 120
#: Watermarks are taken less often than mirrors are observed, because each is a row per partition.
_OBSERVATIONS_PER_WATERMARK = 6


def plan_offsets(only: str | None, config: Path, location: str | None, as_json: bool) -> None:
    """Print the plans of all groups. Exits with 1 if a group cannot resume in one of its partitions."""
    with open_recovery(config, location) as recovery:
        plans = recovery.plan_groups(only)
    _print_plans(plans, as_json)


def sync_offsets(
    only: str | None,
    execute: bool,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Plan the groups' offsets, and with ``execute`` commit them; exits as ``plan_offsets`` does."""
    with open_recovery(config, location) as recovery:
        plans = recovery.plan_groups(only, write=execute)
    if not execute:
        console.print("dry run: commit the offsets with --execute")
    _print_plans(plans, as_json)


def drill_failover(
    active: str,
    passive: str,
    group_names: tuple[str, ...],
    execute: bool,
    author: str,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Forecast or test a failover, and store the result in recovery/drills; exits with 1 if not ready."""
    if execute and not group_names:
        raise InputError("--execute writes the offsets of real groups: name them with --group")
    with open_recovery(config, location) as recovery:
        pair = ClusterPair(active, passive)
        if pair not in {group_sync.pair for group_sync in recovery.group_syncs}:
            raise InputError(f"{config}: recovery.groups has no entry from {active} to {passive}")
        report = recovery.run_drill(pair, group_names, execute, author)
        TableStore(recovery.lake, DRILLS, create=True).append(drill_rows(report))
    for group_drill in report.groups:
        _print_lines(format_drill(group_drill))
    console.print(f"{active} to {passive}: {'READY' if report.is_ready else 'NOT READY'}", markup=False)
    if as_json:
        print_json(drill_document(report))
    if not report.is_ready:
        raise SystemExit(1)


def inspect_failback(
    primary: str,
    secondary: str,
    since: datetime | None,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Print a failback report. Exits with 1 if records are stranded."""
    with open_recovery(config, location) as recovery:
        mirror = recovery.fleet.recovery.mirror_between(primary, secondary)
        if mirror is None:
            raise InputError(f"{config}: recovery.mirrors has no mirror from {primary} to {secondary}")
        recovery.collector.collect()
        at = since.replace(tzinfo=UTC) if since else None
        report = FailbackInspection(recovery.fleet, mirror).inspect(recovery.collector.state, at)
    _print_lines(format_failback(report))
    if as_json:
        print_json(failback_document(report))
    if report.stranded:
        raise SystemExit(1)


def promote_cluster(
    service: str,
    active: str,
    passive: str,
    execute: bool,
    despite: tuple[str, ...],
    author: str,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Check a promotion, and with ``execute`` run it; exits with 1 if it is refused or fails."""
    with open_recovery(config, location) as recovery:
        promotion = create_promotion_context(
            recovery, service, ClusterPair(active, passive), execute, time.sleep
        )
        started = read_wall_clock()
        result = PromotionExecutor(promotion, time.monotonic, time.sleep).run(execute, despite)
        lake = recovery.lake
    _print_lines(format_promotion(result, despite))
    if result.was_attempted:
        _record_action(
            lake, promotion_row(result, despite, author, uuid.uuid4().hex[:12], started, read_wall_clock())
        )
    if as_json:
        print_json(promotion_document(result, despite, author))
    if not result.is_success:
        raise SystemExit(1)


def run_recovery(
    execute: bool,
    observe_every_s: float,
    sync_every_s: float,
    config: Path,
    location: str | None,
    strict: bool,
    listen: ListenAddress | None,
    log_format: str,
    as_json: bool,
) -> None:
    """Run the recovery controller until a signal stops it."""
    configure_logging(log_format)
    health = ProcessHealth("recover", _HEARTBEAT_TIMEOUT_S)
    fleet = load_reported_fleet(config, health.parts, strict=strict).fleet
    faults = FleetFaults(list_mirrored_accesses(fleet), fleet.notifiers, health.parts)
    if strict:
        faults.require_none()
    report_topic_change = TopicChangeReporter(health.registry).report
    last_plans: dict[tuple[str, str, str], GroupSyncPlan] = {}

    def show(plan: GroupSyncPlan) -> None:
        previous = last_plans.get(_plan_key(plan))
        if previous is None or _count_verdicts(previous) != _count_verdicts(plan):
            _print_lines(format_plan(plan))
        last_plans[_plan_key(plan)] = plan

    watermark_every_s = _OBSERVATIONS_PER_WATERMARK * observe_every_s
    # Times are compared with earlier ones of this process, which an adopted step would make wrong; leases of
    # primaries with the clocks of other machines.
    clock = SteadyClock(adopts_after=None)
    with (
        supervise_process(_SHUTDOWN_DEADLINE_S) as shutdown,
        start_recovery(
            fleet, config, location, watermark_every_s, report_topic_change, clock.now_ms
        ) as recovery,
        run_tracers(fleet, report_topic_change, clock.now_ms) as tracer_loop,
        serve_health(health, listen),
        request_shutdown_on_error(shutdown),
    ):
        console.print(f"observing {len(fleet.recovery.mirrors)} mirrors; stop with Ctrl+C")
        primaries = PrimaryMonitor(fleet, read_wall_clock)
        readiness = ReadinessTracker(fleet, recovery.lake, primaries.check, clock.now)
        readiness.start()
        RecoveryController(
            recovery.collector,
            recovery.store,
            recovery.group_syncs,
            health,
            RecoveryMetrics(health.registry),
            fleet,
            tracer_loop,
            readiness,
            faults.update,
            show,
            clock.now_ms,
            time.monotonic,
            observe_every_s,
            sync_every_s,
            execute,
        ).run(shutdown)
    if as_json:
        print_json([plan_document(plan) for plan in last_plans.values()])


def map_position(path: Path, rule: str | None, as_json: bool) -> None:
    """Print the translation of the mapping case in a file. Raises: InputError if it is not a mapping case."""
    case = _read_case(path)
    result = case.map_position(MappingRule(rule) if rule else None)
    _print_lines(format_mapping(case, result))
    if as_json:
        print_json(map_document(result))


def _record_action(lake: str, row: Mapping[str, Any]) -> None:
    """Write a row of ops/actions; an unavailable lake does not fail the action, which is done already."""
    try:
        TableStore(lake, ACTIONS, create=True).append([dict(row)])
    except TableStoreError as error:
        _print_lines([f"the action is not recorded in ops/actions: {error}"])


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _print_plans(plans: SyncPlans, as_json: bool) -> None:
    for plan in plans.groups:
        _print_lines(format_plan(plan))
    _print_lines(f"cannot be read: {line}" for line in plans.unavailable)
    if not (plans.groups or plans.unavailable):
        console.print("no group that matches recovery.groups has committed offsets")
    if as_json:
        print_json([plan_document(plan) for plan in plans.groups])
    if not plans.are_ok:
        raise SystemExit(1)


def _plan_key(plan: GroupSyncPlan) -> tuple[str, str, str]:
    return plan.group, plan.pair.active, plan.pair.passive


def _count_verdicts(plan: GroupSyncPlan) -> Counter[SyncVerdict]:
    return Counter(
        SyncVerdict.UNCHANGED if decision.verdict.is_ok else decision.verdict for decision in plan.decisions
    )


def _read_case(path: Path) -> MappingCase:
    try:
        return parse_case(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text: give JSON in UTF-8") from error
    except MappingCaseError as error:
        raise InputError(f"{path}: {error}") from error
