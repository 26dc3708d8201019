"""`fleetgauge recover`."""

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
    Address,
    InputError,
    console,
    listen_option,
    print_json,
)
from fleetgauge_core.runtime.health_server import Vitals, serving
from fleetgauge_core.runtime.logs import log_option, start_logging
from fleetgauge_core.runtime.shutdown import stopping_on_signals
from fleetgauge_core.tables import ACTIONS, DRILLS
from fleetgauge_operations.recovery.checkpoint_store import StoreLostError
from fleetgauge_operations.recovery.cli_output import (
    drill_document,
    drill_lines,
    failback_document,
    failback_lines,
    map_lines,
    plan_document,
    plan_lines,
)
from fleetgauge_operations.recovery.controller import Watchman
from fleetgauge_operations.recovery.drill import rows_of
from fleetgauge_operations.recovery.failback_inspection import WayBack
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan
from fleetgauge_operations.recovery.metrics import RecoverMetrics
from fleetgauge_operations.recovery.offsets.mapping import Rule
from fleetgauge_operations.recovery.plan.map_case import (
    Case,
    CaseError,
    document,
    parsed,
)
from fleetgauge_operations.recovery.plan.sync_decision import Pair, Verdict
from fleetgauge_operations.recovery.primaries.live import scene_of
from fleetgauge_operations.recovery.primaries.plan.primary_lease import ClaimsError
from fleetgauge_operations.recovery.primaries.plan.promotion import Name
from fleetgauge_operations.recovery.primaries.primary_conditions import ServicesEye
from fleetgauge_operations.recovery.primaries.promote_output import (
    promoted_document,
    promoted_lines,
    promoted_row,
)
from fleetgauge_operations.recovery.primaries.promotion_executor import Promoter
from fleetgauge_operations.recovery.readiness.tracker import Readiness
from fleetgauge_operations.recovery.regions import Plans, now_ms, regions_of, tracing_of

#: A look at a hundred mirrors, one of them silent.
_PATIENCE_S = 900
#: Each is a row in the lake, of every partition; syncs are kept all.
_LOOKS_A_WATERMARK = 6

_config = click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
_lake = click.option("--lake", "location", help="Where the tables are, instead of the fleet file's `lake`.")
_group = click.option("--group", "only", help="This consumer group alone.")
_json = click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")


@click.group(epilog="Example: fleetgauge recover plan")
def recover() -> None:
    """Go on in another region: where a group's position lies there, and what it reads again."""


@recover.command(epilog="Example: fleetgauge recover plan --json")
@_group
@_config
@_lake
@_json
@click.pass_context
def plan(context: click.Context, only: str | None, config: Path, location: str | None, as_json: bool) -> None:
    """Where each group would go on in the other region, and what speaks against it. Changes nothing.

    Exit 1 where a partition of a group has no place to go on.
    """
    with _one_line(), regions_of(config, location) as regions:
        plans = regions.plans(only)
    _answer(context, plans, as_json)


@recover.command(epilog="Example: fleetgauge recover sync --execute")
@_group
@click.option("--execute", is_flag=True, help="Write it; without this it is only said what would be written.")
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
    """Write once where groups go on in the other region, by default as a dry run.

    Never for a group in which somebody reads there, nor backwards unless it was set back where it reads.
    """
    with _one_line(), regions_of(config, location) as regions:
        plans = regions.plans(only, write=execute)
    if not execute:
        console.print("a dry run: --execute writes it")
    _answer(context, plans, as_json)


@recover.command(
    epilog="Example: fleetgauge recover drill --from north-all --to south-all --group billing --execute"
)
@click.option("--from", "active", required=True, help="The cluster that is taken for lost.")
@click.option("--to", "passive", required=True, help="The one in which its groups go on.")
@click.option(
    "--group", "named", multiple=True, help="This consumer group; may be given again. Default: all."
)
@click.option(
    "--execute",
    is_flag=True,
    help="Try it on the groups that are named: write their offsets, read from there, compare. They stay "
    "where they read.",
)
@click.option(
    "--author", default=getpass.getuser, show_default="the user's login", help="Who answers for it."
)
@_config
@_lake
@_json
@click.pass_context
def drill(
    context: click.Context,
    active: str,
    passive: str,
    named: tuple[str, ...],
    execute: bool,
    author: str,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Say what a failover would cost and whether groups are ready for one; exit 1 if not.

    What would be read again, what may be lost with the sources of that region, and all that speaks against
    it. A row a group goes to recovery/drills.
    """
    if execute and not named:
        raise InputError("--execute tries it on real groups: name them with --group")
    with _one_line(), regions_of(config, location) as regions:
        pair = Pair(active, passive)
        if pair not in {one.pair for one in regions.movers}:
            raise InputError(f"{config}: recovery.groups has none that go on from {active} in {passive}")
        found = regions.drilled(pair, named, execute, author)
        TableStore(regions.lake, DRILLS, create=True).append(rows_of(found))
    for one in found.groups:
        _say(drill_lines(one))
    console.print(f"{active} to {passive}: {'READY' if found.is_ready else 'NOT READY'}", markup=False)
    if as_json:
        print_json(drill_document(found))
    context.exit(0 if found.is_ready else 1)


@recover.command(epilog="Example: fleetgauge recover failback --primary north --secondary south --json")
@click.option("--primary", required=True, help="The cluster that failed and is there again.")
@click.option("--secondary", required=True, help="Its copy, which stood in for it.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ"]),
    help="When the primary was given up (UTC): what is new at the secondary since.",
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
    """Say what is stranded in a cluster that failed, what is new in its copy, and how to go back.

    Changes nothing. Records are compared by key, value and time. Exit 1 while something is stranded.
    """
    with _one_line(), regions_of(config, location) as regions:
        mirror = regions.fleet.recovery.between(primary, secondary)
        if mirror is None:
            raise InputError(f"{config}: recovery.mirrors has none from {primary} to {secondary}")
        regions.collector.look()
        at = since.replace(tzinfo=UTC) if since else None
        found = WayBack(regions.fleet, mirror).look(regions.collector.known, at)
    _say(failback_lines(found))
    if as_json:
        print_json(failback_document(found))
    context.exit(1 if found.stranded else 0)


@recover.command(
    epilog="Example: fleetgauge recover promote --service billing --from north-all --to south-all --execute"
)
@click.option("--service", required=True, help="One of recovery.primaries.services.")
@click.option("--from", "active", required=True, help="The cluster that is the primary, or is of its region.")
@click.option("--to", "passive", required=True, help="The one that is to be, with its region.")
@click.option(
    "--execute", is_flag=True, help="Run recovery.primaries.promote if all holds, and verify what came of it."
)
@click.option(
    "--despite",
    multiple=True,
    type=click.Choice([one.value for one in Name]),
    help="Promote though this does not hold, or nobody knows; may be given again.",
)
@click.option(
    "--author", default=getpass.getuser, show_default="the user's login", help="Who answers for it."
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
    """Make another region the primary of a service, if all that is asked of it holds; by default a dry run.

    label: there is one primary, and it is --from, or that one's lease is over and it is dead. aggregates:
    both clusters hold the same of their sources. input_lag: little is on its way into --to. groups: the
    service's could go on there. headroom: it could carry what all produce. Exit 1 if it is refused or fails.
    """
    with _one_line(), regions_of(config, location) as regions:
        scene = scene_of(regions, service, Pair(active, passive), execute, time.sleep)
        began = _now()
        found = Promoter(scene, time.monotonic, time.sleep).run(execute, despite)
        lake = regions.lake
    _say(promoted_lines(found, despite))
    if found.was_tried:
        _keep(lake, promoted_row(found, despite, author, uuid.uuid4().hex[:12], began, _now()))
    if as_json:
        print_json(promoted_document(found, despite, author))
    context.exit(0 if found.is_fine else 1)


@recover.command(epilog="Example: fleetgauge recover run --execute")
@click.option(
    "--execute", is_flag=True, help="Write groups' offsets in the other region, and go on doing so."
)
@click.option(
    "--look-every",
    "look_every_s",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Seconds between two looks at the mirrors.",
)
@click.option(
    "--sync-every",
    "sync_every_s",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="Seconds between two looks at the groups.",
)
@_config
@_lake
@listen_option
@log_option
@_json
def run(
    execute: bool,
    look_every_s: float,
    sync_every_s: float,
    config: Path,
    location: str | None,
    listen: Address | None,
    log_format: str,
    as_json: bool,
) -> None:
    """Keep what MirrorMaker tells, move groups along, say whether the other region is ready, until stopped.

    Tables: recovery/checkpoints; a row a minute in recovery/mirror_minutes, group_minutes, producer_minutes;
    recovery/findings, which the fleet's notifiers are told.
    """
    start_logging(log_format)
    vitals, stopping = Vitals("recover", _PATIENCE_S), stopping_on_signals()
    last: dict[tuple[str, str, str], GroupPlan] = {}

    def show(found: GroupPlan) -> None:
        before = last.get(_key(found))
        if before is None or _verdicts(before) != _verdicts(found):
            _say(plan_lines(found))
        last[_key(found)] = found

    watermark_every_s = _LOOKS_A_WATERMARK * look_every_s
    with (
        _one_line(),
        regions_of(config, location, watermark_every_s) as regions,
        tracing_of(regions.fleet) as tracing,
        serving(vitals, listen),
    ):
        console.print(f"looking at {len(regions.fleet.recovery.mirrors)} mirrors; ^C ends it")
        services = ServicesEye(regions.fleet, _now)
        readiness = Readiness(regions.fleet, regions.lake, services.conditions, _now)
        readiness.start()
        Watchman(
            regions.collector,
            regions.store,
            regions.movers,
            vitals,
            RecoverMetrics(vitals.registry),
            regions.fleet,
            tracing,
            readiness,
            show,
            now_ms,
            time.monotonic,
            look_every_s,
            sync_every_s,
            execute,
        ).run(stopping)
    if as_json:
        print_json([plan_document(one) for one in last.values()])


@recover.command("map", epilog="Example: fleetgauge recover map --from-file case.json --rule uber --json")
@click.option(
    "--from-file",
    "path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="The case, as JSON.",
)
@click.option(
    "--rule",
    type=click.Choice([one.value for one in Rule]),
    help="uber: as published. plus_one: behind what is consumed. watermark: idle sources hold nothing back. "
    "Without it, the latest answer, by the simplest rule that gives it.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")
def map_position(path: Path, rule: str | None, as_json: bool) -> None:
    """Map a group's position in one region's merged topic to another's, without any cluster.

    \b
    {"position": 6,
     "active": {"A": [[1, 3]], "B": [[3, 5]]},
     "passive": {"A": [[1, 1]], "B": [[3, 7]]},
     "passive_log": [0, 8],
     "watermarks": {"A": [[4, 8]]}}

    The case is of one partition. position: the offset that the group reads next in active. active, passive:
    by source, checkpoints [source offset, offset there] in the order in which they were told; a source
    without any is unbounded, and all that passive holds is read again. passive_log: [first offset, next to
    be written].

    watermarks, if any, say of a source that has been idle: [next source offset, next passive offset],
    nothing that it writes from the former on lies before the latter. Those of active say as well that all
    that it wrote before lies before; give both as {"active": {...}, "passive": {...}}.
    """
    case = _read(path)
    answer = case.answer(Rule(rule) if rule else None)
    _say(map_lines(case, answer))
    if as_json:
        print_json(document(answer))


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except (KafkaUnavailableError, TableStoreError, StoreLostError, ClaimsError) as error:
        raise InputError(str(error)) from error


def _keep(lake: str, row: Mapping[str, Any]) -> None:
    """What was done is done, and a lake that cannot be written is no failure of it."""
    try:
        TableStore(lake, ACTIONS, create=True).append([dict(row)])
    except TableStoreError as error:
        _say([f"it is not on record: {error}"])


def _now() -> datetime:
    return datetime.now(UTC)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _answer(context: click.Context, plans: Plans, as_json: bool) -> None:
    for one in plans.groups:
        _say(plan_lines(one))
    _say(f"cannot be seen: {one}" for one in plans.unseen)
    if not (plans.groups or plans.unseen):
        console.print("no group that recovery.groups names has committed anything")
    if as_json:
        print_json([plan_document(one) for one in plans.groups])
    context.exit(0 if plans.are_fine else 1)


def _key(found: GroupPlan) -> tuple[str, str, str]:
    return found.group, found.pair.active, found.pair.passive


def _verdicts(found: GroupPlan) -> Counter[Verdict]:
    return Counter(Verdict.UNCHANGED if one.verdict.is_fine else one.verdict for one in found.decisions)


def _read(path: Path) -> Case:
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text: give JSON in UTF-8") from error
    except CaseError as error:
        raise InputError(f"{path}: {error}") from error
