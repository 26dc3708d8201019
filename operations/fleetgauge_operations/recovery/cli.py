"""`fleetgauge recover`."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fleetgauge_operations.recovery.checkpoint import Checkpoint
from fleetgauge_operations.recovery.collecting import Collector
from fleetgauge_operations.recovery.deciding import Decision, Verdict
from fleetgauge_operations.recovery.mapping import Answer, Constraint, Rule, Why
from fleetgauge_operations.recovery.moving import GroupPlan, Mover
from fleetgauge_operations.recovery.run import Watchman
from fleetgauge_operations.recovery.store import CheckpointStore
from fleetgauge_operations.recovery.what_if import Case, CaseError, document, parsed, printable
from fleetgauge_pipelines.lakes.kept import KeptTableError
from fleetgauge_probes.cli import Address, InputError, console, listen_option, print_json
from fleetgauge_probes.fleet import Fleet, FleetFileError, load
from fleetgauge_probes.kafka import KafkaUnavailableError
from fleetgauge_probes.logs import log_option, start_logging
from fleetgauge_probes.stopping import stopping_on_signals
from fleetgauge_probes.vitals import Vitals, serving

#: Of the partitions that a line names.
_LONGEST = 160

_WORDS = {
    Why.NOT_IN_ACTIVE: "nothing is known of it in active at or before the position",
    Why.NOT_IN_PASSIVE: "nothing is known of it in passive at or before what is consumed",
    Why.MADE_ANEW: "its topic was made anew, and the two sides tell of different ones",
}


_VERDICTS = {
    Verdict.WRITE: "to be written",
    Verdict.UNCHANGED: "there already",
    Verdict.UNKNOWN_TOPIC: "no such topic there",
    Verdict.CONNECTED: "somebody reads in the group there",
    Verdict.MADE_ANEW: "the topic was made anew, and the position is of another one",
    Verdict.STALE: "the mirror stands still",
    Verdict.UNBOUNDED: "nothing is known at or before the position",
    Verdict.POSSIBLE_LOSS: "what is not consumed may be gone there",
    Verdict.BACKWARDS: "it lies further on there",
    Verdict.FAILED: "was to be written, and does not lie there",
}

#: A look at a hundred mirrors, one of them silent.
_PATIENCE_S = 900

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
    with _one_line(), _regions(config, location) as regions:
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
    with _one_line(), _regions(config, location) as regions:
        plans = regions.plans(only, write=execute)
    if not execute:
        console.print("a dry run: --execute writes it")
    _answer(context, plans, as_json)


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
    """Keep in recovery/checkpoints what MirrorMaker tells, and move groups along, until stopped."""
    start_logging(log_format)
    vitals, stopping = Vitals("recover", _PATIENCE_S), stopping_on_signals()
    last: dict[tuple[str, str, str], GroupPlan] = {}

    def show(found: GroupPlan) -> None:
        before = last.get(_key(found))
        if before is None or _verdicts(before) != _verdicts(found):
            _show(found)
        last[_key(found)] = found

    with _one_line(), _regions(config, location) as regions, serving(vitals, listen):
        console.print(f"looking at {len(regions.fleet.recovery.mirrors)} mirrors; ^C ends it")
        Watchman(
            regions.collector,
            regions.store,
            regions.movers,
            vitals,
            show,
            time.monotonic,
            look_every_s,
            sync_every_s,
            execute,
        ).run(stopping)
    if as_json:
        print_json([_document(one) for one in last.values()])


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
    for line in _lines(case, answer):
        console.print(line, markup=False, soft_wrap=True)
    if as_json:
        print_json(document(answer))


@dataclass(frozen=True, slots=True)
class _Regions:
    """What the commands that ask real clusters work with."""

    fleet: Fleet
    store: CheckpointStore
    collector: Collector
    movers: Sequence[Mover]

    def plans(self, only: str | None, write: bool = False) -> tuple[GroupPlan, ...]:
        """After one more look, which is not kept: that is for whoever collects."""
        self.collector.look()
        return tuple(
            mover.write(plan) if write else plan
            for mover in self.movers
            for plan in mover.plans(self.collector.known)
            if only in (None, plan.group)
        )


@contextmanager
def _regions(config: Path, location: str | None) -> Iterator[_Regions]:
    """Raises InputError, KafkaUnavailableError, KeptTableError."""
    try:
        fleet = load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error
    if not fleet.recovery.mirrors:
        raise InputError(f"{config}: recovery.mirrors is empty: say what is copied between which clusters")
    store = CheckpointStore(location or fleet.lake)
    collector = Collector(fleet, store, _now_ms)
    movers = tuple(Mover(fleet, one, _now_ms) for one in fleet.recovery.groups)
    collector.start()
    try:
        for mover in movers:
            mover.start()
        yield _Regions(fleet, store, collector, movers)
    finally:
        collector.stop()


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except (KafkaUnavailableError, KeptTableError) as error:
        raise InputError(str(error)) from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _answer(context: click.Context, plans: Sequence[GroupPlan], as_json: bool) -> None:
    for one in plans:
        _show(one)
    if not plans:
        console.print("no group that recovery.groups names has committed anything")
    if as_json:
        print_json([_document(one) for one in plans])
    context.exit(0 if all(one.is_fine for one in plans) else 1)


def _key(found: GroupPlan) -> tuple[str, str, str]:
    return found.group, found.pair.active, found.pair.passive


def _verdicts(found: GroupPlan) -> Counter[Verdict]:
    return Counter(Verdict.UNCHANGED if one.verdict.is_fine else one.verdict for one in found.decisions)


def _show(found: GroupPlan) -> None:
    early = [one.early_at_most for one in found.decisions if one.early_at_most is not None]
    again = f"; at most {sum(early):,} read again" if early else ""
    did = ", written" if found.wrote else ""
    console.print(
        f"{printable(found.group)}: {found.pair.active} to {found.pair.passive}, "
        f"{len(found.decisions)} partitions{did}{again}",
        markup=False,
        soft_wrap=True,
    )
    for verdict, count in Counter(one.verdict for one in found.decisions).items():
        where = ", ".join(_where(one) for one in found.decisions if one.verdict is verdict)
        short = where if len(where) <= _LONGEST else f"{where[:_LONGEST]}..."
        console.print(f"  {verdict}: {count}: {_VERDICTS[verdict]}: {short}", markup=False, soft_wrap=True)


def _where(one: Decision) -> str:
    at = f"{printable(one.position.topic)}/{one.position.partition}"
    return at if one.resume is None else f"{at} {one.position.committed} at {one.resume}"


def _document(found: GroupPlan) -> dict[str, Any]:
    return {
        "group": found.group,
        "active": found.pair.active,
        "passive": found.pair.passive,
        "written": found.wrote,
        "partitions": [
            {
                "topic": one.position.topic,
                "partition": one.position.partition,
                "committed": one.position.committed,
                "topic_there": one.passive.topic,
                "before": one.passive.committed,
                "resume": one.resume,
                "verdict": one.verdict.value,
                "rule": one.rule,
                "early_at_most": one.early_at_most,
                "silent_s": one.silent_s,
            }
            for one in found.decisions
        ],
    }


def _read(path: Path) -> Case:
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text: give JSON in UTF-8") from error
    except CaseError as error:
        raise InputError(f"{path}: {error}") from error


def _lines(case: Case, answer: Answer) -> Iterator[str]:
    if case.ignored:
        yield f"ignored: {', '.join(map(printable, case.ignored))}"
    for side, histories in (("active", case.active), ("passive", case.passive)):
        for source, one in histories.items():
            if one.forgotten:
                where = f"{side}.{printable(source)}"
                yield f"{where}: {one.forgotten} not used, as offsets in {side} go back after them"
    for source, constraint in answer.per_source.items():
        yield f"{printable(source)}: {_told(constraint)}"
    yield f"resume at {answer.resume}, by {answer.rule}{_how_good(answer)}"


def _told(one: Constraint) -> str:
    if one.resume is None or one.active is None or one.passive is None:
        return f"unbounded: {_WORDS[one.why]}"
    return f"from {one.resume} on: active has {_place(one.active)}, passive {_place(one.passive)}"


def _place(at: Checkpoint) -> str:
    what = "" if at.origin.names_a_record else "watermark "
    return f"{what}{at.src_offset} at {at.dst_offset}"


def _how_good(answer: Answer) -> str:
    if answer.early_at_most is None:
        return ": all that is there is read again, as a source is unbounded"
    loss = "; what is not consumed may be gone already" if answer.possible_loss else ""
    return f": at most {answer.early_at_most} before the first record that is not consumed{loss}"
