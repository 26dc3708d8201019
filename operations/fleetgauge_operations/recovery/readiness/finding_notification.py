"""Recovery findings as rows of recovery/findings and as notifications."""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers.slack import escape_markup
from fleetgauge_operations.recovery.readiness.plan.conditions import (
    ConditionKey,
    ConditionKind,
    ReadinessCondition,
)
from fleetgauge_operations.recovery.readiness.plan.findings import RecoveryFinding
from fleetgauge_operations.recovery.readiness.plan.minutes import MinuteRow

_RUNBOOK = "docs/runbooks/recovery.md"
#: A process that starts notifies once more of findings that ended within this time.
RENOTIFIED_WITHIN = timedelta(hours=1)


def finding_row(finding: RecoveryFinding) -> MinuteRow:
    """Return a finding as a row of recovery/findings."""
    condition = finding.condition
    return {
        "fingerprint": finding.fingerprint,
        "at": finding.at,
        "opens": finding.opens,
        "kind": condition.key.kind.value,
        "severity": condition.key.kind.severity,
        "cluster_id": condition.key.cluster,
        "other_id": condition.key.other,
        "subject": condition.key.subject,
        "summary": condition.summary,
        "evidence": json.dumps({"words": condition.details, **condition.evidence}, default=str),
    }


def latest_findings(rows: Iterable[Mapping[str, Any]]) -> list[RecoveryFinding]:
    """Return the latest row of each finding; kinds of a newer version are ignored."""
    latest: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        latest[row["fingerprint"]] = row
    return [_parse_row(row) for row in latest.values() if row["kind"] in set(ConditionKind)]


def _parse_row(row: Mapping[str, Any]) -> RecoveryFinding:
    key = ConditionKey(
        ConditionKind(row["kind"]), row["cluster_id"], row["other_id"] or "", row["subject"] or ""
    )
    evidence = json.loads(row["evidence"])
    words = tuple(evidence.pop("words", ()))
    return RecoveryFinding(ReadinessCondition(key, row["summary"], words, evidence), row["at"], row["opens"])


def finding_notification(finding: RecoveryFinding, page_url: str | None) -> Notification:
    """Return a finding's notification; ``page_url`` is the address of `fleetgauge dash`, if configured."""
    condition, key = finding.condition, finding.condition.key
    notification_id = f"{finding.fingerprint}/{finding.at.isoformat()}/{'opens' if finding.opens else 'over'}"
    page = {"page": f"{page_url.rstrip('/')}/recovery"} if page_url else {}
    words = (condition.summary, *condition.details)
    summary = condition.summary if finding.opens else f"resolved: {condition.summary}"
    more = {"words": list(words), "runbook": _RUNBOOK, "evidence": dict(condition.evidence), **page}
    byline = f"{finding.at:%Y-%m-%d %H:%M:%S} UTC"
    return Notification(
        notification_id=notification_id,
        incident=finding.fingerprint,
        firing=finding.opens,
        severity=key.kind.severity,
        kind=key.kind.value,
        cluster_id=key.cluster,
        at=finding.at,
        summary=summary,
        alert_name=key.kind.value,
        labels={name: value for name, value in (("other", key.other), ("subject", key.subject)) if value},
        annotations={"summary": summary, "kind": key.kind.value, "words": "\n".join(words)},
        document=more,
        details={"id": notification_id, **more},
        chat_lines=[escape_markup(line) for line in (byline, *words[1:])],
        earlier_severities=("page", "ticket"),
    )
