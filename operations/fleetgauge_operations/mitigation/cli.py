"""`fleetgauge mitigate`."""

import getpass
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fleetgauge_operations.mitigation.case import Action, Case, Intent, Outcome
from fleetgauge_operations.mitigation.demotion import Restoration, restored
from fleetgauge_operations.mitigation.fail_safes import Refusal, refusals, undo_refusals
from fleetgauge_operations.mitigation.hand import Hand, UndoRefusedError
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS
from fleetgauge_operations.mitigation.live import LiveCluster, SeatTakenError, only_hand
from fleetgauge_operations.mitigation.look import Look, findings_of
from fleetgauge_operations.mitigation.news import News, tell
from fleetgauge_operations.mitigation.record import Record
from fleetgauge_operations.mitigation.situation import Sick, Situation, sick_now
from fleetgauge_pipelines.detection import Finding
from fleetgauge_pipelines.lakes.kept import KeptTableError
from fleetgauge_probes.cli import InputError, console, print_json
from fleetgauge_probes.fleet import Cluster, Fleet, FleetFileError, load
from fleetgauge_probes.kafka import KafkaUnavailableError, Standing

_config = click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
_lake = click.option("--lake", "location", help="Where the tables are, instead of the fleet file's `lake`.")
_execute = click.option(
    "--execute", is_flag=True, help="Do it; without this it is only said what would be done."
)
_reason = click.option("--reason", help="Why, if it is not for what the watch has found; it goes on record.")
_author = click.option(
    "--author", default=getpass.getuser, show_default="the user's login", help="Who answers for it."
)
_json = click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")

#: Of what a broker has; see _Planned.document.
_WHAT = {
    Action.DEMOTE: "the last replica of all its {partitions} partitions, no more the leader of {leads}",
    Action.QUARANTINE_RESTART: "restarted, and slow to follow its {partitions} partitions",
}


@click.group(epilog="Example: fleetgauge mitigate plan")
def mitigate() -> None:
    """Do something about a sick broker, behind fail-safes, and undo it."""


@mitigate.command(epilog="Example: fleetgauge mitigate plan --json")
@_config
@_lake
@_json
def plan(config: Path, location: str | None, as_json: bool) -> None:
    """What could be done about what is named now, and what speaks against it. Changes nothing."""
    desk = _desk(config, location)
    with _one_line():
        findings = findings_of(desk.look.telemetry)
        planned = [
            _Planned(intent, situation, refusals(intent, situation, _now()))
            for cluster in desk.fleet.clusters
            for intent, situation in _wanted(desk, cluster, sick_now(findings, cluster.id), findings)
        ]
    if not planned:
        console.print("nothing is named that an action helps against")
    for one in planned:
        one.show()
    if as_json:
        print_json([one.document() for one in planned])


@mitigate.command(epilog="Example: fleetgauge mitigate apply --cluster orders-eu --broker 2 --execute")
@click.option("--cluster", "cluster_id", required=True, help="Whose broker it is.")
@click.option("--broker", "broker_id", type=int, required=True, help="Its id.")
@click.option(
    "--action",
    type=click.Choice([one.value for one in Action]),
    default=Action.DEMOTE.value,
    show_default=True,
    help="What to do about it.",
)
@_reason
@_execute
@_author
@_config
@_lake
@_json
@click.pass_context
def apply(
    context: click.Context,
    cluster_id: str,
    broker_id: int,
    action: str,
    reason: str | None,
    execute: bool,
    author: str,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Do something about a broker, by default as a dry run; exit 1 where it is forbidden or failed."""
    desk = _desk(config, location)
    cluster = desk.cluster(cluster_id)
    intent = Intent(Action(action), cluster_id, broker_id, reason)
    with _one_line():
        findings = findings_of(desk.look.telemetry)
        situation = desk.look.at(cluster, findings)
        planned = _Planned(intent, situation, refusals(intent, situation, _now()))
        if not execute:
            planned.show()
            console.print("a dry run: --execute does it")
            document = planned.document() | {"executed": False}
            failed = bool(planned.against)
        else:
            why = reason or ", ".join(one.phase for one in situation.sick if one.broker_id == broker_id)
            with _hand(desk, cluster) as hand:
                case = hand.treat(intent, uuid.uuid4().hex[:12], author, why or "not named")
            _show(case)
            told = _told(desk, News(case, case.outcome, case.words, _now()))
            document = _document(case) | {"executed": True, "told": told}
            failed = case.outcome is not Outcome.DONE
    if as_json:
        print_json(document)
    context.exit(1 if failed else 0)


@mitigate.command(epilog="Example: fleetgauge mitigate undo 3f2a9c01d4e7 --execute")
@click.argument("case_id", metavar="CASE")
@_reason
@_execute
@_config
@_lake
@_json
@click.pass_context
def undo(
    context: click.Context,
    case_id: str,
    reason: str | None,
    execute: bool,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Give a broker back what a case took from it, as it was, but for what somebody changed since."""
    desk = _desk(config, location)
    with _one_line():
        case = next((one for one in desk.look.record.read(_now()).cases if one.case_id == case_id), None)
        if case is None or not case.is_open:
            raise InputError(f"no case {case_id} is open; see fleetgauge mitigate history")
        cluster = desk.cluster(case.cluster_id)
        against: Sequence[Refusal]
        told: Sequence[str] = ()
        if execute:
            try:
                with _hand(desk, cluster) as hand:
                    case = hand.undo(case, reason)
                against, news = (), News(case, case.outcome, case.words, _now(), undoing=True)
            except UndoRefusedError as error:
                words = tuple(one.words for one in error.against)
                against, news = error.against, News(case, Outcome.REFUSED, words, _now(), undoing=True)
            told = _told(desk, news)
        else:
            situation = desk.look.again(cluster, but=case_id)
            back = restored(situation.layout, case.orders)
            against = undo_refusals(case, back, situation, reason)
            console.print(_undoing(case, back), markup=False, soft_wrap=True)
    _show(case)
    for one in against:
        console.print(f"  refused ({one.why}): {one.words}", style="yellow", markup=False, soft_wrap=True)
    if not execute:
        console.print("a dry run: --execute does it")
    if as_json:
        refused = [{"why": one.why, "words": one.words} for one in against]
        print_json(_document(case) | {"executed": execute, "refusals": refused, "told": list(told)})
    context.exit(1 if against or (execute and case.outcome is Outcome.FAILED) else 0)


@mitigate.command(epilog="Example: fleetgauge mitigate history --json")
@_config
@_lake
@_json
def history(config: Path, location: str | None, as_json: bool) -> None:
    """Every case on record, refused ones too."""
    with _one_line():
        cases = Record(location or _fleet(config).lake).read(_now()).cases
    for case in cases:
        _show(case)
    if as_json:
        print_json([_document(case) for case in cases])


@dataclass(frozen=True, slots=True)
class _Desk:
    """What a command works with."""

    fleet: Fleet
    look: Look
    config: Path

    def cluster(self, cluster_id: str) -> Cluster:
        """Raises InputError."""
        known = {one.id: one for one in self.fleet.clusters}
        if cluster_id not in known:
            raise InputError(f"{self.config}: no cluster {cluster_id} (known: {', '.join(list(known)[:10])})")
        return known[cluster_id]


@dataclass(frozen=True, slots=True)
class _Planned:
    """What would be done, and all that forbids it."""

    intent: Intent
    situation: Situation
    against: Sequence[Refusal]

    def show(self) -> None:
        document = self.document()
        what = _WHAT[self.intent.action].format(**document)
        console.print(
            f"{self.intent.cluster_id}: {self.intent.action} broker {self.intent.broker_id}: {what}",
            markup=False,
            soft_wrap=True,
        )
        for one in self.against:
            console.print(f"  refused ({one.why}): {one.words}", style="yellow", markup=False, soft_wrap=True)

    def document(self) -> dict[str, Any]:
        intent, layout = self.intent, self.situation.layout
        return {
            "cluster": intent.cluster_id,
            "broker": intent.broker_id,
            "action": intent.action,
            "partitions": len(layout.replicated_on(intent.broker_id)),
            "leads": len(layout.led_by(intent.broker_id)),
            "refusals": [{"why": one.why, "words": one.words} for one in self.against],
        }


def _wanted(
    desk: _Desk, cluster: Cluster, sick: Sequence[Sick], findings: Sequence[Finding]
) -> Iterator[tuple[Intent, Situation]]:
    """What helps against what is named in a cluster; it is read only if there is any."""
    wanted = sorted(
        {
            (action, one.broker_id)
            for one in sick
            for action, phases in DEFAULT_LIMITS.warrants.items()
            if one.phase in phases and one.broker_id is not None
        }
    )
    if wanted:
        situation = desk.look.at(cluster, findings)
        for action, broker_id in wanted:
            yield Intent(action, cluster.id, broker_id), situation


def _undoing(case: Case, back: Restoration) -> str:
    if case.action is Action.QUARANTINE_RESTART:
        return f"broker {case.broker_id} may follow {len(case.throttles)} topics as fast as it can"
    return (
        f"{len(back.orders)} partitions get their order back, broker {case.broker_id} leads "
        f"{len(back.led_by(case.broker_id))} of them; {len(back.kept)} were changed since and stay"
    )


@contextmanager
def _hand(desk: _Desk, cluster: Cluster) -> Iterator[Hand]:
    with console.status("acting, once the seat is free"), only_hand(desk.look.telemetry) as term:
        yield Hand(
            observe=lambda but: desk.look.again(cluster, but),
            cluster=LiveCluster(cluster.access, cluster.restart),
            journal=desk.look.record,
            may_act=lambda: term.confirm() is Standing.HELD,
            clock=_now,
            wait=time.sleep,
        )


def _told(desk: _Desk, news: News) -> list[str]:
    """By host, who was told of it."""
    with console.status("telling the notifiers"):
        return tell(desk.fleet.notifiers, news, time.sleep)


def _desk(config: Path, location: str | None) -> _Desk:
    fleet = _fleet(config)
    if fleet.telemetry is None:
        raise InputError(f"{config}: telemetry.bootstrap is missing: say where the watch's findings are")
    return _Desk(fleet, Look(fleet.telemetry, Record(location or fleet.lake), _now), config)


def _fleet(config: Path) -> Fleet:
    try:
        return load(config)
    except FleetFileError as error:
        raise InputError(str(error)) from error


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except (KafkaUnavailableError, KeptTableError, SeatTakenError) as error:
        raise InputError(str(error)) from error


def _show(case: Case) -> None:
    style = {Outcome.DONE: "green", Outcome.UNDONE: "green", Outcome.FAILED: "bold red"}.get(case.outcome)
    console.print(
        f"{case.case_id}  {case.began:%FT%TZ}  {case.cluster_id}: {case.action} broker {case.broker_id}: "
        f"{case.outcome}  {case.reason} ({case.author})",
        style=style,
        markup=False,
        soft_wrap=True,
    )
    for words in case.words:
        console.print(f"  {words}", markup=False, soft_wrap=True)


def _document(case: Case) -> dict[str, Any]:
    return {
        "case": case.case_id,
        "cluster": case.cluster_id,
        "broker": case.broker_id,
        "action": case.action,
        "outcome": case.outcome,
        "began": case.began.isoformat(),
        "ended": case.ended.isoformat() if case.ended else None,
        "author": case.author,
        "reason": case.reason,
        "partitions": len(case.orders),
        "topics": len(case.throttles),
        "words": list(case.words),
    }


def _now() -> datetime:
    return datetime.now(UTC)
