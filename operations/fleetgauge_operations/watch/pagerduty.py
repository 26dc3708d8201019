"""A finding as an event of PagerDuty's Events API v2: one incident for each fingerprint."""

import json
from typing import Any

from fleetgauge_core.detection import Finding
from fleetgauge_operations.notify.receivers import pagerduty_resolve, pagerduty_trigger
from fleetgauge_operations.watch.message_format import Manner


def message(finding: Finding, manner: Manner, routing_key: str) -> dict[str, Any]:
    """Triggers or resolves."""
    event, subject = finding.event, finding.subject
    if finding.clears:
        return pagerduty_resolve(routing_key, event.fingerprint)
    return pagerduty_trigger(
        routing_key,
        event.fingerprint,
        summary=manner.summary(subject, finding.from_phase, finding.to_phase),
        severity=manner.severity(subject),
        cluster_id=event.cluster_id,
        broker_id=event.broker_id,
        kind=event.kind,
        at=event.at,
        details={
            "id": event.event_id,
            "runbook": manner.runbook(finding.from_phase, finding.to_phase),
            "advice": manner.advice(subject, finding.to_phase),
            "around": manner.around(finding),
            "evidence": json.loads(event.evidence),
        },
        page=manner.page(subject),
    )
