"""Changes as JSON values: what `fleetgauge changes --json` prints, and what a backfill reads."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fleetgauge_core.contract.json_fields import JsonFieldError, read_integer, read_text, read_time
from fleetgauge_core.contract.records import ClusterChange

#: Fields that hold text, and those that hold any JSON value, by their names in a document.
_TEXTS = {
    "cluster": "cluster_id",
    "topic": "topic",
    "segment": "segment",
    "segment_value": "segment_value",
    "author": "author",
    "title": "title",
    "link": "link",
}
_VALUES = ("before", "after", "evidence")
_MAX_BROKER_ID = 2**31 - 1
_HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")
#: What `changes --json` prints; ``costs`` are read by nobody.
_KEYS = frozenset(
    {"change_id", "broker", "kind", "phase", "at", "starts", "ends", "source", "costs", *_TEXTS, *_VALUES}
)


class ChangeDocumentError(ValueError):
    """A JSON value that is no change; the message is one line with the field and what is wrong with it."""


def change_document(record: ClusterChange) -> dict[str, Any]:
    """Return a change as a JSON value."""
    return {
        "change_id": record.change_id,
        "cluster": record.cluster_id,
        "broker": record.broker_id,
        "topic": record.topic,
        "segment": record.segment,
        "segment_value": record.segment_value,
        "kind": record.kind,
        "phase": record.phase,
        "at": record.at.isoformat(),
        "starts": record.starts.isoformat(),
        "ends": record.ends.isoformat() if record.ends else None,
        "before": _parse(record.before),
        "after": _parse(record.after),
        "evidence": _parse(record.evidence),
        "source": record.source,
        "author": record.author,
        "title": record.title,
        "link": record.link,
    }


def _parse(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def read_change_document(document: Any, now: datetime) -> ClusterChange:
    """Return the change that a JSON value describes; only ``kind`` and ``starts`` are required.

    A change without an ID gets one that is derived from its content; without ``at`` it was told ``now``.
    Raises: ChangeDocumentError.
    """
    if not isinstance(document, dict):
        raise ChangeDocumentError("is not an object")
    if unknown := sorted(set(document) - _KEYS):
        raise ChangeDocumentError(
            f"{unknown[0][:60]!r} is no key of a change; those are {', '.join(sorted(_KEYS))}"
        )
    try:
        change = _read_fields(document, now)
        change.check()
    except ValueError as error:
        raise ChangeDocumentError(str(error)) from error
    return change


def _read_fields(document: Mapping[str, Any], now: datetime) -> ClusterChange:
    starts, ends, at = (read_time(document, name) for name in ("starts", "ends", "at"))
    texts = {field: _text(document, name) for name, field in _TEXTS.items()}
    values = {name: _encode(document, name) for name in _VALUES}
    kind = _text(document, "kind")
    if not kind:
        raise JsonFieldError("kind: is missing")
    if starts is None:
        raise JsonFieldError("starts: is missing")
    name = json.dumps(document, sort_keys=True)
    return ClusterChange(
        event_id=uuid5(NAMESPACE_URL, name).hex,
        change_id=_text(document, "change_id") or uuid5(NAMESPACE_URL, f"change {name}").hex,
        broker_id=_broker(document),
        kind=kind,
        phase=_text(document, "phase") or ("begun" if ends is None else "ended"),
        at=at or now,
        starts=starts,
        ends=ends,
        source=_text(document, "source") or "file",
        before=values["before"],
        after=values["after"],
        evidence=values["evidence"] or "{}",
        **texts,
    )


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = read_text(document, name)
    if value is not None and _HALF_CHARACTER.search(value):
        raise JsonFieldError(f"{name}: has half of a character, which cannot be stored")
    return value


def _encode(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    return None if value is None else json.dumps(value, separators=(",", ":"))


def _broker(document: Mapping[str, Any]) -> int | None:
    broker = read_integer(document, "broker")
    if broker is not None and not 0 <= broker <= _MAX_BROKER_ID:
        raise JsonFieldError(f"broker: must be from 0 to {_MAX_BROKER_ID}")
    return broker
