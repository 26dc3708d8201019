"""`fleetgauge mitigate`."""

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.status import Status

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.lake.table_store import TableStoreError
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
from fleetgauge_operations.mitigation.case import LADDER, Action, Case, Intent, Outcome
from fleetgauge_operations.mitigation.demotion import Restoration, restored
from fleetgauge_operations.mitigation.desk import Desk, desk_of, fleet_of, new_case_id, now
from fleetgauge_operations.mitigation.fail_safes import Refusal, refusals, undo_refusals
from fleetgauge_operations.mitigation.hand import UndoRefusedError
from fleetgauge_operations.mitigation.limits import DEFAULT_LIMITS
from fleetgauge_operations.mitigation.live import SeatTakenError
from fleetgauge_operations.mitigation.look import findings_of
from fleetgauge_operations.mitigation.news import News
from fleetgauge_operations.mitigation.record import Record
from fleetgauge_operations.mitigation.run import OnDuty
from fleetgauge_operations.mitigation.situation import Sick, Situation, sick_now

#: A broker may take five minutes to restart, and five more to be back.
_PATIENCE_S = 900

_config = click.option(
    "--config", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The fleet."
)
_lake = click.option("--lake", "location", help="Where the tables are, instead of the fleet file's `lake`.")
_execute = click.option(
    "--execute", is_flag=True, help="Do it; without this it is only said what would be done."
)


def _not_blank(_: click.Context, __: click.Parameter, reason: str | None) -> str | None:
    """A variable that is not set must not pass for a person's reason."""
    if reason is not None and not reason.strip():
        raise click.BadParameter("is blank: say why, or leave it away")
    return reason


_reason = click.option(
    "--reason",
    callback=_not_blank,
    help="Why, if it is not for what the watch has found; it goes on record.",
)
_author = click.option(
    "--author", default=getpass.getuser, show_default="the user's login", help="Who answers for it."
)
_json = click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")

#: Of what a broker has; see _Planned.document.
_WHAT = {
    Action.DEMOTE: "the last replica of all its {partitions} partitions, no more the leader of {leads}",
    Action.RESTART: "restarted, and no more",
    Action.QUARANTINE_RESTART: "restarted, and slow to follow its {partitions} partitions",
    Action.EVACUATE: "its replicas of {partitions} partitions moved to other brokers, with their data",
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
    desk = desk_of(config, location)
    with _one_line():
        findings = findings_of(desk.look.telemetry)
        planned = [
            _Planned(intent, situation, refusals(intent, situation, now()))
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
    desk = desk_of(config, location)
    cluster = desk.cluster(cluster_id)
    intent = Intent(Action(action), cluster_id, broker_id, reason)
    with _one_line():
        findings = findings_of(desk.look.telemetry)
        situation = desk.look.at(cluster, findings)
        planned = _Planned(intent, situation, refusals(intent, situation, now()))
        if not execute:
            planned.show()
            console.print("a dry run: --execute does it")
            document = planned.document() | {"executed": False}
            failed = bool(planned.against)
        else:
            why = reason or ", ".join(one.phase for one in situation.sick if one.broker_id == broker_id)
            with _acting(), desk.hand(cluster) as hand:
                case = hand.treat(intent, new_case_id(), author, why or "not named")
            _show(case)
            told = _told(desk, News.of(case, now()))
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
    desk = desk_of(config, location)
    with _one_line():
        case = next((one for one in desk.look.record.read(now()).cases if one.case_id == case_id), None)
        if case is None or not case.is_open:
            raise InputError(f"no case {case_id} is open; see fleetgauge mitigate history")
        cluster = desk.cluster(case.cluster_id)
        against: Sequence[Refusal]
        told: Sequence[str] = ()
        if execute:
            try:
                with _acting(), desk.hand(cluster) as hand:
                    case = hand.undo(case, reason)
                against, news = (), News.of(case, now())
            except UndoRefusedError as error:
                words = tuple(one.words for one in error.against)
                against, news = error.against, News(case, Outcome.REFUSED, words, now(), undoing=True)
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


@mitigate.command(epilog="Example: fleetgauge mitigate run --config fleet.yaml")
@_config
@_lake
@listen_option
@log_option
@_json
def run(
    config: Path, location: str | None, listen: ListenAddress | None, log_format: str, as_json: bool
) -> None:
    """Do what `mitigation` of the fleet file lets it, tell what is for a person, until stopped."""
    configure_logging(log_format)
    desk = desk_of(config, location)
    health = ProcessHealth("mitigate", _PATIENCE_S)
    shutdown = install_shutdown_handlers()
    console.print(f"on duty for {len(desk.fleet.clusters)} clusters; ^C ends it")
    with serve_health(health, listen):
        came = OnDuty(desk, health, _show, desk.case_notifier()).run(shutdown)
    if as_json:
        print_json([_document(case) for case in came])


@mitigate.command(epilog="Example: fleetgauge mitigate history --json")
@_config
@_lake
@_json
def history(config: Path, location: str | None, as_json: bool) -> None:
    """Every case on record, refused ones too."""
    with _one_line():
        cases = Record(location or fleet_of(config).lake).read(now()).cases
    for case in cases:
        _show(case)
    if as_json:
        print_json([_document(case) for case in cases])


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
    desk: Desk, cluster: Cluster, sick: Sequence[Sick], findings: Sequence[Finding]
) -> Iterator[tuple[Intent, Situation]]:
    """What helps against what is named in a cluster; it is read only if there is any."""
    wanted = {
        (one.broker_id, action)
        for one in sick
        for action, phases in DEFAULT_LIMITS.warrants.items()
        if one.phase in phases and one.broker_id is not None
    }
    if wanted:
        situation = desk.look.at(cluster, findings)
        for broker_id, action in sorted(wanted, key=lambda one: (one[0], LADDER.index(one[1]))):
            if situation.mode(action) != "off":
                yield Intent(action, cluster.id, broker_id), situation


def _undoing(case: Case, back: Restoration) -> str:
    if case.action is Action.QUARANTINE_RESTART:
        return f"broker {case.broker_id} may follow {len(case.throttles)} topics as fast as it can"
    if case.action is not Action.DEMOTE:
        return f"nothing is otherwise; the case is closed once broker {case.broker_id} is back"
    at_most = f"{DEFAULT_LIMITS.led_again_a_minute:,} a minute at most"
    return (
        f"{len(back.orders)} partitions get their order back, broker {case.broker_id} leads "
        f"{len(back.led_by(case.broker_id))} of them ({at_most}); "
        f"{len(back.kept)} were changed since and stay"
    )


def _acting() -> Status:
    return console.status("acting, once the seat is free")


def _told(desk: Desk, news: News) -> list[str]:
    """By host, who was told of it."""
    with console.status("telling the notifiers"):
        return desk.notify(news.notification)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except (KafkaUnavailableError, TableStoreError, SeatTakenError) as error:
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
        "against": list(case.against),
        "told": list(case.told or ()),
        "rejected": list(case.rejected),
        "words": list(case.words),
    }
