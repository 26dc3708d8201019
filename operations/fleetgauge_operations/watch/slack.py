"""A finding as people read it in a channel: Slack's incoming webhooks, and what takes their JSON."""

from typing import Any

from fleetgauge_core.detection import Finding
from fleetgauge_operations.notify.receivers import plain, slack_message
from fleetgauge_operations.watch.message_format import Manner


def message(finding: Finding, manner: Manner) -> dict[str, Any]:
    """A line of news, one that says where to go on reading, and one for each thing that is known besides."""
    subject = finding.subject
    page = manner.page(subject)
    more = [f"<{page}|since when, and what speaks for it>"] if page else []
    if finding.names:
        more.append(f"what to do: {plain(manner.runbook(finding.from_phase, finding.to_phase))}")
        if advice := manner.advice(subject, finding.to_phase):
            more.append(f"`{plain(advice)}`")
    at = f"{finding.event.at:%Y-%m-%d %H:%M:%S} UTC"
    summary = manner.summary(subject, finding.from_phase, finding.to_phase)
    severity = None if finding.clears else manner.severity(subject)
    return slack_message(summary, severity, [" · ".join([at, *more]), *map(plain, manner.around(finding))])
