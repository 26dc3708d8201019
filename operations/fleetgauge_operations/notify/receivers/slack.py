"""A notification as a chat message for Slack incoming webhooks and compatible services."""

from typing import Any

from fleetgauge_operations.notify.notification import Notification

_SIGNS = {"page": ":red_circle:", "ticket": ":large_yellow_circle:", "burn-in": ":white_circle:"}
_RESOLVED_SIGN = ":large_green_circle:"


def escape_markup(text: str) -> str:
    """Return text with Slack's markup characters escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack_body(notification: Notification) -> dict[str, Any]:
    """Return the message: a severity emoji and the summary, then the chat lines."""
    sign = _SIGNS[notification.severity] if notification.firing else _RESOLVED_SIGN
    return {"text": "\n".join([f"{sign} *{escape_markup(notification.summary)}*", *notification.chat_lines])}
