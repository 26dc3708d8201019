"""A finding as JSON for programs."""

import json
from typing import Any

from fleetgauge_core.detection import Finding
from fleetgauge_operations.watch.message_format import Manner


def message(finding: Finding, manner: Manner) -> dict[str, Any]:
    """What a receiver is told; the same event has the same id however often it is sent."""
    event, subject = finding.event, finding.subject
    return {
        "id": event.event_id,
        "fingerprint": event.fingerprint,
        "status": "resolved" if finding.clears else "firing",
        "severity": manner.severity(subject),
        "kind": event.kind,
        "cluster": event.cluster_id,
        "broker": event.broker_id,
        "vantage": subject.vantage,
        "at": event.at.isoformat(),
        "summary": manner.summary(subject, finding.from_phase, finding.to_phase),
        "runbook": manner.runbook(finding.from_phase, finding.to_phase),
        "advice": manner.advice(subject, finding.to_phase),
        "page": manner.page(subject),
        "around": manner.around(finding),
        "evidence": json.loads(event.evidence),
    }
