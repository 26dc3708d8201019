"""Changes that people and other systems report: checked, and as records."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_URL, uuid5

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.tables import REPORTED_KINDS, ChangePhase

MAX_TITLE = 300
MAX_NAME = 249
MAX_LINK = 2_000
_MAX_BROKER_ID = 2**31 - 1
#: A change that is announced for later, or reported afterwards, within these.
_LATEST, _EARLIEST = timedelta(days=35), timedelta(days=35)
#: Whatever takes longer explains little of it.
_LONGEST = timedelta(days=7)
_LINK = re.compile(r"https?://\S+", re.IGNORECASE)
#: Control characters, and halves of characters, which no text can be stored with.
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class ReportedChangeError(ValueError):
    """A reported change with a field that cannot be accepted; the message is one line."""


@dataclass(frozen=True, slots=True)
class ReportedChange:
    """What is reported: exactly one of a cluster (or a broker of it), a segment, or all of the fleet."""

    kind: str
    title: str
    starts: datetime
    ends: datetime
    cluster_id: str | None = None
    broker_id: int | None = None
    segment: str | None = None
    segment_value: str | None = None
    author: str | None = None
    link: str | None = None


def build_reported_record(
    change: ReportedChange,
    change_id: str,
    source: str,
    clusters: Mapping[str, frozenset[tuple[str, str]]],
    now: datetime,
    at: datetime | None = None,
) -> ClusterChange:
    """Return the record of a reported change. ``clusters`` are the segments of each cluster of the fleet.

    A second report of a change amends it: of its records the one with the latest ``at`` counts, by default
    ``now``. Raises: ReportedChangeError with the first field that cannot be accepted, and
    why.
    """
    reported_at = round_to_ms(at or now)
    _check_texts(change)
    _check_times(change, now)
    _check_subject(change, clusters)
    return ClusterChange(
        event_id=uuid5(NAMESPACE_URL, f"{change_id} {reported_at.isoformat()} {change}").hex,
        change_id=change_id,
        cluster_id=change.cluster_id,
        broker_id=change.broker_id,
        segment=change.segment,
        segment_value=change.segment_value,
        kind=change.kind,
        phase=ChangePhase.HAPPENED.value,
        at=reported_at,
        starts=change.starts,
        ends=change.ends,
        source=source,
        author=change.author,
        title=change.title,
        link=change.link,
    )


def _check_texts(change: ReportedChange) -> None:
    if change.kind not in REPORTED_KINDS:
        kinds = ", ".join(REPORTED_KINDS)
        raise ReportedChangeError(f"kind: {_shorten(change.kind)!r} is none of {kinds}")
    for name, value, limit in (
        ("title", change.title, MAX_TITLE),
        ("author", change.author, MAX_NAME),
        ("cluster", change.cluster_id, MAX_NAME),
        ("segment", change.segment, MAX_NAME),
        ("segment", change.segment_value, MAX_NAME),
        ("link", change.link, MAX_LINK),
    ):
        if value is not None and len(value) > limit:
            raise ReportedChangeError(f"{name}: longer than {limit} characters")
        if value is not None and _UNUSABLE.search(value):
            raise ReportedChangeError(f"{name}: has a control character, such as a line break")
    if not change.title.strip():
        raise ReportedChangeError("title: must not be blank: say in a few words what changes")
    if change.link is not None and not is_usable_link(change.link):
        raise ReportedChangeError("link: must begin with http:// or https:// and have no space")


def is_usable_link(link: str) -> bool:
    """Return whether a page may show it as a link."""
    return len(link) <= MAX_LINK and bool(_LINK.fullmatch(link)) and not _UNUSABLE.search(link)


def _check_times(change: ReportedChange, now: datetime) -> None:
    if change.ends < change.starts:
        raise ReportedChangeError(f"to: {change.ends:%FT%TZ} is before from, {change.starts:%FT%TZ}")
    if change.starts > now + _LATEST or change.ends > now + _LATEST:
        raise ReportedChangeError(f"from, to: more than {_LATEST.days} days in the future")
    if change.starts < now - _EARLIEST:
        raise ReportedChangeError(f"from: more than {_EARLIEST.days} days ago: its weeks are closed")
    if change.ends - change.starts > _LONGEST:
        raise ReportedChangeError(f"from, to: longer than {_LONGEST.days} days; report its parts")


def _check_subject(change: ReportedChange, clusters: Mapping[str, frozenset[tuple[str, str]]]) -> None:
    if change.cluster_id is not None and change.segment is not None:
        raise ReportedChangeError("cluster, segment: give one of them")
    if change.cluster_id is not None and change.cluster_id not in clusters:
        raise ReportedChangeError(f"cluster: the fleet has no cluster {_shorten(change.cluster_id)!r}")
    if change.broker_id is not None and change.cluster_id is None:
        raise ReportedChangeError("broker: needs the cluster that it belongs to")
    if change.broker_id is not None and not 0 <= change.broker_id <= _MAX_BROKER_ID:
        raise ReportedChangeError(f"broker: must be from 0 to {_MAX_BROKER_ID}")
    if change.segment is not None and not any(
        (change.segment, change.segment_value) in segments for segments in clusters.values()
    ):
        raise ReportedChangeError(
            f"segment: no cluster is in {_shorten(f'{change.segment}={change.segment_value}')}"
        )


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def round_to_ms(at: datetime) -> datetime:
    """Return a time in UTC as a record holds it. Raises: ReportedChangeError if there is no such time."""
    try:
        at = at.astimezone(UTC)
    except OverflowError:
        raise ReportedChangeError(f"{at.isoformat()}: is outside of the years 1 to 9999") from None
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def withdraw(record: ClusterChange, author: str | None, now: datetime) -> ClusterChange:
    """Return the record by which a reported change no longer counts.

    Raises: ReportedChangeError if it was observed, not reported.
    """
    if record.kind not in REPORTED_KINDS:
        raise ReportedChangeError(
            f"{record.change_id}: what was observed ({record.kind}) cannot be withdrawn"
        )
    at = round_to_ms(now)
    return replace(
        record,
        event_id=uuid5(NAMESPACE_URL, f"{record.change_id} {at.isoformat()} withdrawn").hex,
        phase=ChangePhase.CANCELLED.value,
        at=at,
        ends=record.ends or record.starts,
        author=author,
    )
