"""What the commands of `fleetgauge mitigate` do."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.status import Status

from fleetgauge_core.detection import Finding
from fleetgauge_core.fleet import Cluster, load_fleet
from fleetgauge_core.runtime.cli import InputError, ListenAddress, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.runtime.health_server import ProcessHealth, serve_health
from fleetgauge_core.runtime.logs import configure_logging
from fleetgauge_core.runtime.steady_clock import SteadyClock, read_wall_clock
from fleetgauge_core.runtime.supervision import supervise_process
from fleetgauge_core.tables import MITIGATION_KINDS, ActionKind, ActionOutcome
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.case_notification import CaseNotification
from fleetgauge_operations.actions.executor import UndoRefusedError
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import Refusal
from fleetgauge_operations.actions.plan.refusals import find_refusals, find_undo_refusals
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, ClusterSnapshot, find_active_alerts
from fleetgauge_operations.mitigation.context import (
    MitigationContext,
    create_case_id,
    create_context,
    open_mitigation,
)
from fleetgauge_operations.mitigation.controller import MitigationController
from fleetgauge_operations.mitigation.plan.rules import build_rules
from fleetgauge_operations.notify.fleet_faults import FleetFaults, load_reported_fleet

#: Maximum time between heartbeats: the main loop reads findings and ops/actions, and sends notifications.
_HEARTBEAT_TIMEOUT_S = 300
#: A running step is completed; the longest is a restart with three verifications of up to 5 min each.
_SHUTDOWN_DEADLINE_S = 1200
_RULES = build_rules()


def plan_actions(config: Path, location: str | None, as_json: bool) -> None:
    """Print the actions that present alerts warrant, with what refuses them."""
    mitigation = open_mitigation(config, location)
    findings = mitigation.read_findings()
    proposals = [
        _propose(request, snapshot)
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


def apply_action(
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
    """Apply an action to a broker if ``execute``, else print it; exit with 1 if it is refused or fails."""
    mitigation = open_mitigation(config, location)
    cluster = mitigation.find_cluster(cluster_id)
    request = ActionRequest(ActionKind(action), cluster_id, broker_id, reason)
    findings = mitigation.read_findings()
    snapshot = mitigation.observer.read_snapshot(cluster, findings)
    proposal = _propose(request, snapshot)
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
        receivers = _notify(mitigation, CaseNotification.from_case(case, mitigation.clock()))
        document = _case_document(case) | {"executed": True, "told": receivers}
        failed = case.outcome is not ActionOutcome.DONE
    if as_json:
        print_json(document)
    if failed:
        raise SystemExit(1)


def undo_action(
    case_id: str,
    reason: str | None,
    execute: bool,
    config: Path,
    location: str | None,
    as_json: bool,
) -> None:
    """Undo an action if ``execute``, else print what would change; exit with 1 if refused or failed."""
    mitigation = open_mitigation(config, location)
    case = _read_open_case(mitigation, case_id)
    cluster = mitigation.find_cluster(case.cluster_id)
    refusals: Sequence[Refusal]
    receivers: Sequence[str] = ()
    if execute:
        try:
            with _acting(), mitigation.open_executor(cluster) as executor:
                # Read again, because the previous leader may have closed the case.
                case = executor.undo(_read_open_case(mitigation, case_id), reason)
            refusals, notification = (), CaseNotification.from_case(case, mitigation.clock())
        except UndoRefusedError as error:
            refusals = error.refusals
            words = tuple(refusal.explanation for refusal in refusals)
            notification = CaseNotification(
                case, ActionOutcome.REFUSED, words, mitigation.clock(), is_undo=True
            )
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
        refused = _refusal_documents(refusals)
        print_json(_case_document(case) | {"executed": execute, "refusals": refused, "told": list(receivers)})
    if refusals or (execute and case.outcome is ActionOutcome.FAILED):
        raise SystemExit(1)


def run_mitigation(
    config: Path,
    location: str | None,
    strict: bool,
    listen: ListenAddress | None,
    log_format: str,
    as_json: bool,
) -> None:
    """Run the mitigation controller until a signal stops it."""
    configure_logging(log_format)
    health = ProcessHealth("mitigate", _HEARTBEAT_TIMEOUT_S)
    loaded = load_reported_fleet(config, health.parts, strict=strict)
    # No action on a cluster with a bad entry, even if it has a usable one as well.
    clusters = tuple(each for each in loaded.fleet.clusters if each.id not in loaded.unusable_ids)
    mitigation = create_context(
        loaded.fleet.model_copy(update={"clusters": clusters}), config, location, SteadyClock().now
    )
    faults = FleetFaults(
        {cluster.id: cluster.access for cluster in clusters},
        loaded.fleet.notifiers,
        health.parts,
        mitigation.observer.telemetry.access,
    )
    if strict:
        faults.require_none()
    console.print(f"mitigation runs for {len(clusters)} clusters; ^C stops it")
    with supervise_process(_SHUTDOWN_DEADLINE_S) as shutdown, serve_health(health, listen):
        controller = MitigationController(
            mitigation,
            mitigation.create_control_loops(),
            mitigation.create_case_notifier(),
            faults.update,
            health,
            _show,
            time.monotonic,
        )
        changed_cases = controller.run(shutdown)
    if as_json:
        print_json([_case_document(case) for case in changed_cases])


def list_cases(config: Path, location: str | None, as_json: bool) -> None:
    """Print all cases, refused ones too."""
    audit_log = AuditLog(location or load_fleet(config).lake)
    cases = audit_log.read_entries().cases
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
            "refusals": _refusal_documents(self.refusals),
        }


def _propose(request: ActionRequest, snapshot: ClusterSnapshot) -> _ProposedAction:
    refusals = find_refusals(request, snapshot, read_wall_clock(), _RULES[request.kind])
    return _ProposedAction(request, snapshot, refusals)


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


def _read_open_case(mitigation: MitigationContext, case_id: str) -> ActionCase:
    """Return an open case by its ID. Raises: InputError if no such case is open."""
    case = next((case for case in mitigation.read_cases() if case.case_id == case_id), None)
    if case is None or not case.is_open:
        raise InputError(f"no case {case_id} is open; see fleetgauge mitigate history")
    return case


def _acting() -> Status:
    return console.status("waiting for the leadership of the cluster's actions, then acting")


def _notify(mitigation: MitigationContext, notification: CaseNotification) -> list[str]:
    """Return the hosts of the receivers that accepted the notification."""
    with console.status("notifying"):
        return mitigation.notify(notification.notification)


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
    for explanation in case.explanations:
        console.print(f"  {explanation}", markup=False, soft_wrap=True)


def _show_refusals(refusals: Sequence[Refusal]) -> None:
    for refusal in refusals:
        console.print(
            f"  refused ({refusal.reason}): {refusal.explanation}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def _refusal_documents(refusals: Sequence[Refusal]) -> list[dict[str, str]]:
    return [{"why": refusal.reason, "words": refusal.explanation} for refusal in refusals]


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
        "against": list(case.refused_by),
        "told": list(case.accepted_by or ()),
        "rejected": list(case.rejected_by),
        "words": list(case.explanations),
    }
