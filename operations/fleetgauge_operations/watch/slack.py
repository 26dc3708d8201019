"""A finding as people read it in a channel: Slack's incoming webhooks, and what takes their JSON."""

from typing import Any

from fleetgauge_operations.watch.words import Links, summary
from fleetgauge_pipelines.detection import Finding


def message(finding: Finding, links: Links) -> dict[str, Any]:
    """One line of news and one that says where to go on reading; the page is a link where it is known."""
    subject = finding.subject
    page = links.page(subject)
    more = [f"<{page}|since when, and what speaks for it>"] if page else []
    if finding.names:
        more.append(f"what to do: {_plain(links.runbook(subject))}")
    sign = ":red_circle:" if finding.names else ":large_green_circle:"
    news = f"{sign} *{_plain(summary(subject, finding.from_phase, finding.to_phase))}*"
    at = f"{finding.event.at:%Y-%m-%d %H:%M:%S} UTC"
    return {"text": "\n".join([news, " · ".join([at, *more])])}


def _plain(text: str) -> str:
    """What Slack would take for markup, as text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
