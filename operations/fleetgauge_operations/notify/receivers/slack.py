"""A notification as people read it in a channel: Slack's incoming webhooks, and what takes their JSON."""

from typing import Any

from fleetgauge_operations.notify.notification import Notification

_SIGNS = {"page": ":red_circle:", "ticket": ":large_yellow_circle:", "burn-in": ":white_circle:"}
_RESOLVED_SIGN = ":large_green_circle:"


def escape_markup(text: str) -> str:
    """Return text in which Slack finds no markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack_body(notification: Notification) -> dict[str, Any]:
    """Return the message: the summary behind a sign, then the lines."""
    sign = _SIGNS[notification.severity] if notification.firing else _RESOLVED_SIGN
    return {"text": "\n".join([f"{sign} *{escape_markup(notification.summary)}*", *notification.chat_lines])}
