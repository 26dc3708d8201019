"""The commands of `fleetgauge mitigate`."""

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
from fleetgauge_core.runtime.options import config_option, json_option, lake_option, listen_option
from fleetgauge_core.runtime.shutdown import install_shutdown_handlers
from fleetgauge_core.tables import MITIGATION_KINDS, ActionKind, ActionOutcome
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.case_notification import CaseNotification
from fleetgauge_operations.actions.executor import UndoRefusedError
from fleetgauge_operations.actions.leadership import LeadershipTakenError
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import Refusal
from fleetgauge_operations.actions.plan.refusals import find_refusals, find_undo_refusals
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot, find_active_alerts
from fleetgauge_operations.mitigation.context import (
    MitigationContext,
    create_case_id,
    open_mitigation,
    read_fleet_file,
    utc_now,
)
from fleetgauge_operations.mitigation.controller import MitigationController
from fleetgauge_operations.mitigation.plan.rules import build_rules

#: Maximum time between heartbeats; a round reads the findings and ops/actions.
_HEARTBEAT_TIMEOUT_S = 900
_RULES = build_rules()

_json = json_option()
_execute = click.option(
    "--execute", is_flag=True, help="Apply the changes; without this option they are only shown."
)


def _reject_blank(_: click.Context, __: click.Parameter, reason: str | None) -> str | None:
    """Raise BadParameter for a blank reason, such as from an unset shell variable."""
    if reason is not None and not reason.strip():
        raise click.BadParameter("must not be blank: give a reason or omit the option")
    return reason


_reason = click.option(
    "--reason",
    callback=_reject_blank,
    help="Reason, if it is not an alert of the watch; it is stored in ops/actions.",
)
_author = click.option(
    "--author",
    default=getpass.getuser,
    show_default="the user's login",
    help="Person or script that is responsible; stored in ops/actions.",
)


@click.group(epilog="Example: fleetgauge mitigate plan")
def mitigate() -> None:
    """Apply actions to an unhealthy broker, guarded by fail-safes, and undo them."""


@mitigate.command(epilog="Example: fleetgauge mitigate plan --json")
@config_option
@lake_option
@_json
def plan(config: Path, location: str | None, as_json: bool) -> None:
    """Show the actions that present alerts warrant, and which fail-safes refuse them. Changes nothing."""
    mitigation = open_mitigation(config, location)
    with _errors_as_input_errors():
        findings = mitigation.read_findings()
        proposals = [
            _ProposedAction(
                request, snapshot, find_refusals(request, snapshot, utc_now(), _RULES[request.kind])
            )
            for cluster in mitigation.fleet.clusters
            for request, snapshot in _find_warranted(
                mitigation, cluster, find_active_alerts(findings, cluster.id), findings
            )
        ]
    if not proposals:
        console.print("no alert warrants an action")
    for proposal in proposals:
        proposal.show()
    if as_json:
        print_json([proposal.document() for proposal in proposals])


@mitigate.command(epilog="Example: fleetgauge mitigate apply --cluster orders-eu --broker 2 --execute")
@click.option("--cluster", "cluster_id", required=True, help="ID of the cluster.")
@click.option("--broker", "broker_id", type=int, required=True, help="ID of the broker.")
@click.option(
    "--action",
    type=click.Choice([action.value for action in MITIGATION_KINDS]),
    default=ActionKind.DEMOTE.value,
    show_default=True,
    help="Action to apply.",
)
@_reason
@_execute
@_author
@config_option
@lake_option
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
    """Apply an action to a broker, by default as a dry run. Exits with 1 if it is refused or fails."""
    mitigation = open_mitigation(config, location)
    cluster = mitigation.find_cluster(cluster_id)
    request = ActionRequest(ActionKind(action), cluster_id, broker_id, reason)
    with _errors_as_input_errors():
        findings = mitigation.read_findings()
        snapshot = mitigation.observer.read_snapshot(cluster, findings)
        proposal = _ProposedAction(
            request, snapshot, find_refusals(request, snapshot, utc_now(), _RULES[request.kind])
        )
        if not execute:
            proposal.show()
            console.print("dry run: --execute applies the action")
            document = proposal.document() | {"executed": False}
            failed = bool(proposal.refusals)
        else:
            states = ", ".join(alert.state for alert in snapshot.alerts if alert.broker_id == broker_id)
            with _acting(), mitigation.open_executor(cluster) as executor:
                case = executor.apply(request, create_case_id(), author, reason or states or "no alert")
            _show(case)
            receivers = _notify(mitigation, CaseNotification.from_case(case, utc_now()))
            document = _case_document(case) | {"executed": True, "told": receivers}
            failed = case.outcome is not ActionOutcome.DONE
    if as_json:
        print_json(document)
    context.exit(1 if failed else 0)


@mitigate.command(epilog="Example: fleetgauge mitigate undo 3f2a9c01d4e7 --execute")
@click.argument("case_id", metavar="CASE")
@_reason
@_execute
@config_option
@lake_option
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
    """Undo an action, except for what was changed after it, by default as a dry run."""
    mitigation = open_mitigation(config, location)
    with _errors_as_input_errors():
        cases = mitigation.read_cases()
        case = next((case for case in cases if case.case_id == case_id), None)
        if case is None or not case.is_open:
            raise InputError(f"no case {case_id} is open; see fleetgauge mitigate history")
        cluster = mitigation.find_cluster(case.cluster_id)
        refusals: Sequence[Refusal]
        receivers: Sequence[str] = ()
        if execute:
            try:
                with _acting(), mitigation.open_executor(cluster) as executor:
                    case = executor.undo(case, reason)
                refusals, notification = (), CaseNotification.from_case(case, utc_now())
            except UndoRefusedError as error:
                refusals = error.refusals
                words = tuple(refusal.explanation for refusal in refusals)
                notification = CaseNotification(case, ActionOutcome.REFUSED, words, utc_now(), is_undo=True)
            receivers = _notify(mitigation, notification)
        else:
            snapshot = mitigation.observer.read_latest_snapshot(cluster, case_id)
            refusals = find_undo_refusals(case, snapshot, reason, _RULES[case.kind])
            undo_effect = _RULES[case.kind].describe_undo(case, snapshot.metadata)
            console.print(undo_effect, markup=False, soft_wrap=True)
    _show(case)
    _show_refusals(refusals)
    if not execute:
        console.print("dry run: --execute undoes the action")
    if as_json:
        refused = [{"why": refusal.reason, "words": refusal.explanation} for refusal in refusals]
        print_json(_case_document(case) | {"executed": execute, "refusals": refused, "told": list(receivers)})
    context.exit(1 if refusals or (execute and case.outcome is ActionOutcome.FAILED) else 0)


@mitigate.command(epilog="Example: fleetgauge mitigate run --config fleet.yaml")
@config_option
@lake_option
@listen_option
@log_option
@_json
def run(
    config: Path, location: str | None, listen: ListenAddress | None, log_format: str, as_json: bool
) -> None:
    """Apply what `mitigation` in the fleet file permits, and notify operators of the rest, until stopped."""
    configure_logging(log_format)
    mitigation = open_mitigation(config, location)
    health = ProcessHealth("mitigate", _HEARTBEAT_TIMEOUT_S)
    shutdown = install_shutdown_handlers()
    console.print(f"mitigation runs for {len(mitigation.fleet.clusters)} clusters; ^C stops it")
    with serve_health(health, listen):
        controller = MitigationController(
            mitigation,
            mitigation.create_control_loops(),
            mitigation.create_case_notifier(),
            health,
            _show,
            utc_now,
        )
        changed_cases = controller.run(shutdown)
    if as_json:
        print_json([_case_document(case) for case in changed_cases])


@mitigate.command(epilog="Example: fleetgauge mitigate history --json")
@config_option
@lake_option
@_json
def history(config: Path, location: str | None, as_json: bool) -> None:
    """List all cases, refused ones too."""
    with _errors_as_input_errors():
        audit_log = AuditLog(location or read_fleet_file(config).lake)
        cases = audit_log.read_entries(utc_now()).cases
    for case in cases:
        _show(case)
    if as_json:
        print_json([_case_document(case) for case in cases])


@dataclass(frozen=True, slots=True)
class _ProposedAction:
    """An action that could be applied, with everything that forbids it."""

    request: ActionRequest
    snapshot: ClusterSnapshot
    refusals: Sequence[Refusal]

    def show(self) -> None:
        request = self.request
        effect = _RULES[request.kind].describe_effect(self.snapshot.metadata, request.broker_id)
        console.print(
            f"{request.cluster_id}: {request.kind} broker {request.broker_id}: {effect}",
            markup=False,
            soft_wrap=True,
        )
        _show_refusals(self.refusals)

    def document(self) -> dict[str, Any]:
        """Return the answer of --json."""
        request, metadata = self.request, self.snapshot.metadata
        return {
            "cluster": request.cluster_id,
            "broker": request.broker_id,
            "action": request.kind,
            "partitions": len(metadata.replicated_on(request.broker_id)),
            "leads": len(metadata.led_by(request.broker_id)),
            "refusals": [{"why": refusal.reason, "words": refusal.explanation} for refusal in self.refusals],
        }


def _find_warranted(
    mitigation: MitigationContext,
    cluster: Cluster,
    alerts: Sequence[ActiveAlert],
    findings: Sequence[Finding],
) -> Iterator[tuple[ActionRequest, ClusterSnapshot]]:
    """Yield the actions that alerts warrant; the cluster is read only if there are any."""
    warranted = {
        (alert.broker_id, kind)
        for alert in alerts
        for kind, rules in _RULES.items()
        if alert.state in rules.limits.warrants and alert.broker_id is not None
    }
    if warranted:
        snapshot = mitigation.observer.read_snapshot(cluster, findings)
        for broker_id, kind in sorted(warranted, key=lambda pair: (pair[0], MITIGATION_KINDS.index(pair[1]))):
            if snapshot.mode(kind) != "off":
                yield ActionRequest(kind, cluster.id, broker_id), snapshot


def _acting() -> Status:
    return console.status("waiting for the leadership of the cluster's actions, then acting")


def _notify(mitigation: MitigationContext, notification: CaseNotification) -> list[str]:
    """Return the hosts of the receivers that accepted the notification."""
    with console.status("notifying"):
        return mitigation.notify(notification.notification)


@contextmanager
def _errors_as_input_errors() -> Iterator[None]:
    try:
        yield
    except (KafkaUnavailableError, TableStoreError, LeadershipTakenError) as error:
        raise InputError(str(error)) from error


def _show(case: ActionCase) -> None:
    styles = {
        ActionOutcome.DONE: "green",
        ActionOutcome.UNDONE: "green",
        ActionOutcome.FAILED: "bold red",
    }
    console.print(
        f"{case.case_id}  {case.began:%FT%TZ}  {case.cluster_id}: {case.kind} broker {case.broker_id}: "
        f"{case.outcome}  {case.reason} ({case.author})",
        style=styles.get(case.outcome),
        markup=False,
        soft_wrap=True,
    )
    for explanation in case.words:
        console.print(f"  {explanation}", markup=False, soft_wrap=True)


def _show_refusals(refusals: Sequence[Refusal]) -> None:
    for refusal in refusals:
        console.print(
            f"  refused ({refusal.reason}): {refusal.explanation}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def _case_document(case: ActionCase) -> dict[str, Any]:
    return {
        "case": case.case_id,
        "cluster": case.cluster_id,
        "broker": case.broker_id,
        "action": case.kind,
        "outcome": case.outcome,
        "began": case.began.isoformat(),
        "ended": case.ended.isoformat() if case.ended else None,
        "author": case.author,
        "reason": case.reason,
        "partitions": len(case.plan.get("orders", ())),
        "topics": len(case.plan.get("throttles", ())),
        "against": list(case.against),
        "told": list(case.told or ()),
        "rejected": list(case.rejected),
        "words": list(case.words),
    }
