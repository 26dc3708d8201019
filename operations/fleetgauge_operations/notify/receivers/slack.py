"""A notification as a chat message for Slack incoming webhooks and compatible services."""

from typing import Any

from fleetgauge_operations.notify.notification import Notification
from fleetgauge_operations.notify.receivers.limits import cut_escaped, keep_lines

_SIGNS = {
    "page": ":red_circle:",
    "ticket": ":large_yellow_circle:",
    "burn-in": ":white_circle:",
    "info": ":large_blue_circle:",
}
_RESOLVED_SIGN = ":large_green_circle:"
#: Slack splits a longer text into several messages, in the middle of markup, and cuts it at 40,000.
_MAX_CHARACTERS = 4000
#: Leaves room for the line with the links, which is next.
_MAX_SUMMARY_CHARACTERS = 1024


def escape_markup(text: str) -> str:
    """Return text with Slack's markup characters escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack_body(notification: Notification) -> dict[str, Any]:
    """Return the message: a severity emoji and the summary, then the chat lines as far as they fit."""
    sign = _SIGNS[notification.severity] if notification.firing else _RESOLVED_SIGN
    summary = cut_escaped(notification.summary, escape_markup, _MAX_SUMMARY_CHARACTERS)
    return {"text": keep_lines([f"{sign} *{summary}*", *notification.chat_lines], _MAX_CHARACTERS)}
