"""A finding as an event of PagerDuty's Events API v2: one incident for each fingerprint."""

import json
from typing import Any

from fleetgauge_operations.receivers import PAGERDUTY_SEVERITIES, PAGERDUTY_SUMMARY
from fleetgauge_operations.watch.words import Manner
from fleetgauge_pipelines.detection import Finding


def message(finding: Finding, manner: Manner, routing_key: str) -> dict[str, Any]:
    """Triggers or resolves. ``routing_key``: of the service's integration."""
    event, subject = finding.event, finding.subject
    page = manner.page(subject)
    known = {"routing_key": routing_key, "dedup_key": event.fingerprint}
    if finding.clears:
        return {**known, "event_action": "resolve"}
    return {
        **known,
        "event_action": "trigger",
        "client": "Fleetgauge",
        "links": [{"href": page, "text": "Since when, and what speaks for it"}] if page else [],
        "payload": {
            "summary": manner.summary(subject, finding.from_phase, finding.to_phase)[:PAGERDUTY_SUMMARY],
            "severity": PAGERDUTY_SEVERITIES[manner.severity(subject)],
            "source": event.cluster_id,
            "component": f"broker {event.broker_id}" if event.broker_id is not None else None,
            "group": event.cluster_id,
            "class": event.kind,
            "timestamp": event.at.isoformat(),
            "custom_details": {
                "id": event.event_id,
                "runbook": manner.runbook(finding.from_phase, finding.to_phase),
                "advice": manner.advice(subject, finding.to_phase),
                "around": manner.around(finding),
                "evidence": json.loads(event.evidence),
            },
        },
    }
