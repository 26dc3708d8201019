"""Records of observed changes, as they go to the topic of changes."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.tables import ChangePhase
from fleetgauge_operations.changes.plan.observed_change import ObservedChange

OBSERVER = "observer"
#: A longer value is cut; a record may have 64 KiB.
_MAX_JSON_LENGTH = 15_000
_MAX_TEXT_LENGTH = 1_000


def build_record(
    change: ObservedChange, cluster_id: str, kafka_cluster_uuid: str, at: datetime
) -> ClusterChange:
    """Return the record of a change that was seen at a time.

    The records of one change have the same ID, whoever writes them. Times are rounded as a record holds them.
    """
    starts = _round_to_ms(change.starts)
    change_id = derive_change_id(
        kafka_cluster_uuid, cluster_id, change.kind, change.broker_id, change.topic, change.key, starts
    )
    return ClusterChange(
        event_id=_derive_id(change_id, change.phase, at.isoformat()),
        change_id=change_id,
        cluster_id=cluster_id,
        broker_id=change.broker_id,
        topic=change.topic,
        kind=change.kind.value,
        phase=change.phase.value,
        at=_round_to_ms(at),
        starts=starts,
        ends=_round_to_ms(change.ends) if change.ends else None,
        before=_encode(change.before),
        after=_encode(change.after),
        evidence=_encode(dict(change.evidence)) or "{}",
        source=OBSERVER,
    )


def derive_change_id(
    kafka_cluster_uuid: str,
    cluster_id: str,
    kind: str,
    broker_id: int | None,
    topic: str | None,
    key: str,
    starts: datetime,
) -> str:
    """Return the ID of a change, from all that tells it from others."""
    return _derive_id(kafka_cluster_uuid, cluster_id, kind, broker_id, topic, key, starts.isoformat())


def derive_report_id(source: str, key: str) -> str:
    """Return the ID of a change that a source reports under a key of its own."""
    return _derive_id("reported", source, key)


def build_end(record: ClusterChange, at: datetime) -> ClusterChange:
    """Return the end of a change that lasts, but of which nothing is seen any more."""
    at = _round_to_ms(at)
    return replace(
        record,
        event_id=_derive_id(record.change_id, ChangePhase.ENDED, at.isoformat()),
        phase=ChangePhase.ENDED.value,
        at=at,
        ends=at,
        evidence=json.dumps({"seen": False}),
    )


def _round_to_ms(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _derive_id(*parts: object) -> str:
    return uuid5(NAMESPACE_URL, json.dumps([str(part) for part in parts])).hex


def _encode(value: Any) -> str | None:
    if value is None:
        return None
    text = json.dumps(value, separators=(",", ":"))
    if len(text) > _MAX_JSON_LENGTH and isinstance(value, dict):
        # The names stay: by them a later record finds its begin.
        text = json.dumps({name: _shorten(member) for name, member in value.items()}, separators=(",", ":"))
    if len(text) > _MAX_JSON_LENGTH:
        text = json.dumps({"cut": text[: _MAX_JSON_LENGTH // 2]}, separators=(",", ":"))
    return text


def _shorten(value: Any) -> Any:
    return (
        f"{value[:_MAX_TEXT_LENGTH]}…" if isinstance(value, str) and len(value) > _MAX_TEXT_LENGTH else value
    )
