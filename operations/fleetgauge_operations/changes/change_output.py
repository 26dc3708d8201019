"""Changes as lines."""

import json
from datetime import datetime
from typing import Any

from fleetgauge_core.contract import ClusterChange

_MAX_VALUE_LENGTH = 120


def format_change(record: ClusterChange) -> str:
    """Return a change as one line: when, where, what, and from which value to which."""
    times = f"{record.starts:%FT%TZ} to {_format_end(record.ends)}"
    kind = record.kind if record.phase == "happened" else f"{record.kind} ({record.phase})"
    return "  ".join((times, format_subject(record), kind, _format_detail(record)))


def format_subject(record: ClusterChange) -> str:
    """Return what the change concerns."""
    if record.cluster_id is None:
        is_fleet = record.segment in (None, "fleet")
        return "fleet" if is_fleet else f"{record.segment}={record.segment_value}"
    parts = [record.cluster_id]
    if record.broker_id is not None:
        parts.append(f"broker {record.broker_id}")
    if record.topic is not None:
        parts.append(f"topic {record.topic}")
    return ", ".join(parts)


def _format_end(ends: datetime | None) -> str:
    return "now" if ends is None else f"{ends:%FT%TZ}"


def _format_detail(record: ClusterChange) -> str:
    if record.title is not None:
        author = f" ({record.author})" if record.author else ""
        return f"{record.title}{author}{f' {record.link}' if record.link else ''}"
    return f"{_format_value(record.before)} -> {_format_value(record.after)}"


def _format_value(text: str | None) -> str:
    value = _parse(text)
    if not isinstance(value, dict):
        return "none"
    formatted = ", ".join(f"{name}={_format_member(member)}" for name, member in value.items())
    return formatted if len(formatted) <= _MAX_VALUE_LENGTH else f"{formatted[:_MAX_VALUE_LENGTH]}…"


def _format_member(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")


def _parse(text: str | None) -> Any:
    return None if text is None else json.loads(text)
