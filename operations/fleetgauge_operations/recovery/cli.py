"""The commands of `fleetgauge recover`."""

import getpass
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.runtime.cli import (
    InputError,
    ListenAddress,
    console,
    print_json,
)
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.logs import configure_logging, log_option
from fleetgauge_core.runtime.options import listen_option
from fleetgauge_core.runtime.shutdown import install_shutdown_handlers
from fleetgauge_core.tables import ACTIONS, DRILLS
from fleetgauge_operations.recovery.checkpoint_store import CheckpointStoreLostError
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
from fleetgauge_operations.recovery.offsets.mapping import MappingRule
from fleetgauge_operations.recovery.plan.map_case import (
    MappingCase,
    MappingCaseError,
    map_document,
    parse_case,
)
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair, SyncVerdict
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLeaseError
from fleetgauge_operations.recovery.primaries.plan.promotion import PreconditionName
from fleetgauge_operations.recovery.primaries.primary_conditions import PrimaryMonitor
from fleetgauge_operations.recovery.primaries.promote_output import (
    format_promotion,
    promotion_document,
    promotion_row,
)
from fleetgauge_operations.recovery.primaries.promotion_context import create_promotion_context
from fleetgauge_operations.recovery.primaries.promotion_executor import PromotionExecutor
from fleetgauge_operations.recovery.readiness.tracker import ReadinessTracker
from fleetgauge_operations.recovery.recovery_context import SyncPlans, now_ms, open_recovery, run_tracers

#: Maximum time between heartbeats: an inspection of a hundred mirrors, one of them unreachable.
_HEARTBEAT_TIMEOUT_S = 900
#: Watermarks are taken less often than mirrors are observed, because each is a row per partition.
_OBSERVATIONS_PER_WATERMARK = 6

_config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    default="fleet.yaml",
    show_default=True,
    help="The fleet file.",
)
_lake = click.option("--lake", "location", help="Location of the tables, instead of the fleet file's `lake`.")
_group = click.option("--group", "only", help="Only this consumer group.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")


@click.group(epilog="Example: fleetgauge recover plan")
def recover() -> None:
    """Fail over to another region: translate group offsets, forecast replay and loss, and fail back."""


@recover.command(epilog="Example: fleetgauge recover plan --json")
@_group
@_config
@_lake
@_json
@click.pass_context
def plan(context: click.Context, only: str | None, config: Path, location: str | None, as_json: bool) -> None:
    """Show where each group would resume in the passive cluster, and what prevents it. Changes nothing.

    Exits with 1 if a group cannot resume in one of its partitions.
    """
    with _errors_as_input_errors(), open_recovery(config, location) as recovery:
        plans = recovery.plan_groups(only)
    _print_plans(context, plans, as_json)


@recover.command(epilog="Example: fleetgauge recover sync --execute")
@_group
@click.option("--execute", is_flag=True, help="Commit the offsets; without this option they are only shown.")
@_config
@_lake
@_json
@click.pass_context
def sync(
    context: click.Context,
    only: str | None,
    execute: bool,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Commit the translated offsets of groups in the passive cluster once, by default as a dry run.

    Skips groups that have members there. Never moves an offset backwards, unless the group was reset in the
    active cluster.
    """
    with _errors_as_input_errors(), open_recovery(config, location) as recovery:
        plans = recovery.plan_groups(only, write=execute)
    if not execute:
        console.print("dry run: commit the offsets with --execute")
    _print_plans(context, plans, as_json)


@recover.command(
    epilog="Example: fleetgauge recover drill --from north-all --to south-all --group billing --execute"
)
@click.option("--from", "active", required=True, help="The active cluster, assumed to fail.")
@click.option("--to", "passive", required=True, help="The passive cluster, in which its groups resume.")
@click.option(
    "--group", "group_names", multiple=True, help="A consumer group; may be repeated. Default: all."
)
@click.option(
    "--execute",
    is_flag=True,
    help="Test the named groups: commit their offsets in the passive cluster, read from there, and compare. "
    "Their consumers are not moved.",
)
@click.option(
    "--author", default=getpass.getuser, show_default="the user's login", help="The person responsible."
)
@_config
@_lake
@_json
@click.pass_context
def drill(
    context: click.Context,
    active: str,
    passive: str,
    group_names: tuple[str, ...],
    execute: bool,
    author: str,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Forecast the replay and loss of a failover, and whether groups are ready for one; exits with 1 if not.

    Shows the records that would be read again, those that may be lost with the failing region, and every
    reason against a failover. Adds a row per group to recovery/drills.
    """
    if execute and not group_names:
        raise InputError("--execute writes the offsets of real groups: name them with --group")
    with _errors_as_input_errors(), open_recovery(config, location) as recovery:
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
    context.exit(0 if report.is_ready else 1)


@recover.command(epilog="Example: fleetgauge recover failback --primary north --secondary south --json")
@click.option("--primary", required=True, help="The cluster that failed and is available again.")
@click.option("--secondary", required=True, help="The cluster that took over.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ"]),
    help="Time of the failover (UTC), to report the records written to the secondary since.",
)
@_config
@_lake
@_json
@click.pass_context
def failback(
    context: click.Context,
    primary: str,
    secondary: str,
    since: datetime | None,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Show the stranded records of a cluster that failed, the new ones of its replica, and how to fail back.

    Changes nothing. Records are compared by key, value and timestamp. Exits with 1 if records are stranded.
    """
    with _errors_as_input_errors(), open_recovery(config, location) as recovery:
        mirror = recovery.fleet.recovery.mirror_between(primary, secondary)
        if mirror is None:
            raise InputError(f"{config}: recovery.mirrors has no mirror from {primary} to {secondary}")
        recovery.collector.collect()
        at = since.replace(tzinfo=UTC) if since else None
        report = FailbackInspection(recovery.fleet, mirror).inspect(recovery.collector.state, at)
    _print_lines(format_failback(report))
    if as_json:
        print_json(failback_document(report))
    context.exit(1 if report.stranded else 0)


@recover.command(
    epilog="Example: fleetgauge recover promote --service billing --from north-all --to south-all --execute"
)
@click.option("--service", required=True, help="A service of recovery.primaries.services.")
@click.option("--from", "active", required=True, help="The current primary, or a cluster of its region.")
@click.option("--to", "passive", required=True, help="The cluster to promote, with its region.")
@click.option(
    "--execute",
    is_flag=True,
    help="Run recovery.primaries.promote if all preconditions are met, and verify the result.",
)
@click.option(
    "--despite",
    multiple=True,
    type=click.Choice([name.value for name in PreconditionName]),
    help="Override a precondition that is not met or unknown; may be repeated.",
)
@click.option(
    "--author", default=getpass.getuser, show_default="the user's login", help="The person responsible."
)
@_config
@_lake
@_json
@click.pass_context
def promote(
    context: click.Context,
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
    """Promote another region to the primary of a service if all preconditions are met; by default a dry run.

    label: --from is the only primary, or its lease has expired and it is unreachable. aggregates: both
    clusters have replicated their sources equally far. input_lag: the replication lag into --to is low.
    groups: the service's groups are ready to resume in --to. headroom: --to has the capacity for the whole
    load. Exits with 1 if the promotion is refused or fails.
    """
    with _errors_as_input_errors(), open_recovery(config, location) as recovery:
        promotion = create_promotion_context(
            recovery, service, ClusterPair(active, passive), execute, time.sleep
        )
        started = _now()
        result = PromotionExecutor(promotion, time.monotonic, time.sleep).run(execute, despite)
        lake = recovery.lake
    _print_lines(format_promotion(result, despite))
    if result.was_attempted:
        _record_action(lake, promotion_row(result, despite, author, uuid.uuid4().hex[:12], started, _now()))
    if as_json:
        print_json(promotion_document(result, despite, author))
    context.exit(0 if result.is_success else 1)


@recover.command(epilog="Example: fleetgauge recover run --execute")
@click.option(
    "--execute", is_flag=True, help="Commit the groups' offsets in the passive cluster continuously."
)
@click.option(
    "--look-every",
    "observe_every_s",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds between two observations of the mirrors.",
)
@click.option(
    "--sync-every",
    "sync_every_s",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="Seconds between two syncs of the groups.",
)
@_config
@_lake
@listen_option
@log_option
@_json
def run(
    execute: bool,
    observe_every_s: float,
    sync_every_s: float,
    config: Path,
    location: str | None,
    listen: ListenAddress | None,
    log_format: str,
    as_json: bool,
) -> None:
    """Store offset syncs, sync group offsets, and evaluate failover readiness, until stopped.

    Writes recovery/checkpoints; a row per minute to recovery/mirror_minutes, group_minutes and
    producer_minutes; and recovery/findings, which are also sent to the fleet's notifiers.
    """
    configure_logging(log_format)
    health, shutdown = ProcessHealth("recover", _HEARTBEAT_TIMEOUT_S), install_shutdown_handlers()
    last_plans: dict[tuple[str, str, str], GroupSyncPlan] = {}

    def show(plan: GroupSyncPlan) -> None:
        previous = last_plans.get(_plan_key(plan))
        if previous is None or _count_verdicts(previous) != _count_verdicts(plan):
            _print_lines(format_plan(plan))
        last_plans[_plan_key(plan)] = plan

    watermark_every_s = _OBSERVATIONS_PER_WATERMARK * observe_every_s
    with (
        _errors_as_input_errors(),
        open_recovery(config, location, watermark_every_s) as recovery,
        run_tracers(recovery.fleet) as tracer_loop,
        serve_health(health, listen),
    ):
        console.print(f"observing {len(recovery.fleet.recovery.mirrors)} mirrors; stop with Ctrl+C")
        primaries = PrimaryMonitor(recovery.fleet, _now)
        readiness = ReadinessTracker(recovery.fleet, recovery.lake, primaries.check, _now)
        readiness.start()
        RecoveryController(
            recovery.collector,
            recovery.store,
            recovery.group_syncs,
            health,
            RecoveryMetrics(health.registry),
            recovery.fleet,
            tracer_loop,
            readiness,
            show,
            now_ms,
            time.monotonic,
            observe_every_s,
            sync_every_s,
            execute,
        ).run(shutdown)
    if as_json:
        print_json([plan_document(plan) for plan in last_plans.values()])


@recover.command("map", epilog="Example: fleetgauge recover map --from-file case.json --rule uber --json")
@click.option(
    "--from-file",
    "path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="The mapping case as JSON.",
)
@click.option(
    "--rule",
    type=click.Choice([rule.value for rule in MappingRule]),
    help="uber: as published. plus_one: one past a consumed checkpoint. watermark: idle sources do not hold "
    "back the result. Default: the highest offset, by the simplest rule that gives it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def map_command(path: Path, rule: str | None, as_json: bool) -> None:
    """Translate a group's position between two merged topics, without any cluster.

    \b
    {"position": 6,
     "active": {"A": [[1, 3]], "B": [[3, 5]]},
     "passive": {"A": [[1, 1]], "B": [[3, 7]]},
     "passive_log": [0, 8],
     "watermarks": {"A": [[4, 8]]}}

    The case is about one partition. position: the offset that the group reads next in active. active,
    passive: by source, checkpoints [source offset, offset in the merged topic] in the order of observation; a
    source without checkpoints is unbounded, and the whole passive log is read again. passive_log: [log start
    offset, log end offset].

    watermarks (optional), for sources that are idle: [source end offset, passive offset]; no record that the
    source writes from the first offset on lies before the second one. Watermarks of active also state that
    all earlier records lie before it; give both as {"active": {...}, "passive": {...}}.
    """
    case = _read_case(path)
    result = case.map_position(MappingRule(rule) if rule else None)
    _print_lines(format_mapping(case, result))
    if as_json:
        print_json(map_document(result))


@contextmanager
def _errors_as_input_errors() -> Iterator[None]:
    try:
        yield
    except (KafkaUnavailableError, TableStoreError, CheckpointStoreLostError, PrimaryLeaseError) as error:
        raise InputError(str(error)) from error


def _record_action(lake: str, row: Mapping[str, Any]) -> None:
    """Write a row of ops/actions; an unavailable lake does not fail the action, which is done already."""
    try:
        TableStore(lake, ACTIONS, create=True).append([dict(row)])
    except TableStoreError as error:
        _print_lines([f"the action is not recorded in ops/actions: {error}"])


def _now() -> datetime:
    return datetime.now(UTC)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _print_plans(context: click.Context, plans: SyncPlans, as_json: bool) -> None:
    for plan in plans.groups:
        _print_lines(format_plan(plan))
    _print_lines(f"cannot be read: {line}" for line in plans.unavailable)
    if not (plans.groups or plans.unavailable):
        console.print("no group that matches recovery.groups has committed offsets")
    if as_json:
        print_json([plan_document(plan) for plan in plans.groups])
    context.exit(0 if plans.are_ok else 1)


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
