"""The forms in which other systems report changes by HTTP, as reported changes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleetgauge_core.fleet import WHOLE_FLEET, split_segment
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.reported_change import (
    MAX_NAME,
    MAX_TITLE,
    ReportedChange,
    ReportedChangeError,
    is_usable_link,
    round_to_ms,
)

#: The states of a GitHub deployment in which it has come to its end.
_FINAL_STATES = frozenset({"success", "failure", "error"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")
_OWN_KEYS = frozenset(
    {"id", "kind", "title", "cluster", "broker", "segment", "fleet", "from", "to", "author", "link"}
)


@dataclass(frozen=True, slots=True)
class PostedReport:
    """A change that a request reports; all with one ``key`` report the same change, None: a new one."""

    change: ReportedChange
    key: str | None = None
    at: datetime | None = None
    """The time of which it tells, if requests may come in another order."""


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What is known of a report beside its content.

    ``event`` is GitHub's name of what happened; ``segment`` the one that a change concerns if it names no
    clusters.
    """

    event: str
    segment: tuple[str, str]
    now: datetime


#: Returns the report in a JSON object; None if it reports nothing.
ParseReport = Callable[[Mapping[str, Any], ReportContext], PostedReport | None]


def parse_own(document: Mapping[str, Any], context: ReportContext) -> PostedReport | None:
    """Return the change in a report of Fleetgauge's own form.

    Raises: ReportedChangeError with the first field that cannot be accepted.
    """
    if unknown := sorted(set(document) - _OWN_KEYS):
        known = ", ".join(sorted(_OWN_KEYS))
        raise ReportedChangeError(f"{_shorten(unknown[0])!r} is no field of a change; those are {known}")
    cluster_id, named = _text(document, "cluster"), _text(document, "segment")
    whole_fleet = document.get("fleet", False)
    if not isinstance(whole_fleet, bool):
        raise ReportedChangeError("fleet: must be true or false")
    if (cluster_id is not None) + (named is not None) + whole_fleet > 1:
        raise ReportedChangeError("give one of cluster, segment and fleet")
    if named is not None:
        segment = split_segment(named)
        if not all(segment):
            raise ReportedChangeError("segment: must be NAME=VALUE, such as region=eu-west-1")
    else:
        segment = WHOLE_FLEET if whole_fleet else context.segment
    starts = _time(document, "from") or round_to_ms(context.now)
    change = ReportedChange(
        kind=_text(document, "kind") or ChangeKind.OTHER.value,
        title=_text(document, "title") or "",
        starts=starts,
        ends=_time(document, "to") or starts,
        cluster_id=cluster_id,
        broker_id=_integer(document, "broker"),
        segment=None if cluster_id is not None else segment[0],
        segment_value=None if cluster_id is not None else segment[1],
        author=_text(document, "author"),
        link=_text(document, "link"),
    )
    return PostedReport(change, _text(document, "id") or None)


def parse_github(document: Mapping[str, Any], context: ReportContext) -> PostedReport | None:
    """Return the change in a webhook of GitHub for a deployment, or for the status in which it has ended.

    The documentation of GitHub's events ``deployment`` and ``deployment_status`` describes them. Raises:
    ReportedChangeError with the first field that cannot be accepted.
    """
    if context.event not in ("deployment", "deployment_status"):
        return None
    deployment, repository = _object(document, "deployment"), _object(document, "repository")
    status = _object(document, "deployment_status") if context.event == "deployment_status" else {}
    state = _text(status, "state")
    if status and state not in _FINAL_STATES:
        return None
    starts = _required_time(deployment, "created_at")
    name = " ".join(filter(None, (_text(repository, "full_name"), _text(deployment, "ref"))))
    place = f" to {environment}" if (environment := _text(deployment, "environment")) else ""
    change = ReportedChange(
        kind=ChangeKind.DEPLOY.value,
        title=_clean(f"{name}{place}{f': {state}' if state else ''}", MAX_TITLE) or "",
        starts=starts,
        ends=_required_time(status, "created_at") if status else starts,
        segment=context.segment[0],
        segment_value=context.segment[1],
        author=_clean(_text(deployment.get("creator") or {}, "login"), MAX_NAME),
        link=_select_link(status.get("target_url"), status.get("log_url"), repository.get("html_url")),
    )
    return PostedReport(change, f"deployment {_required_integer(deployment, 'id')}", change.ends)


def parse_pagerduty(document: Mapping[str, Any], context: ReportContext) -> PostedReport | None:
    """Return the change in a change event of PagerDuty's Events API v2.

    Raises: ReportedChangeError with the first field that cannot be accepted.
    """
    payload, links = _object(document, "payload"), document.get("links") or []
    if not isinstance(links, list):
        raise ReportedChangeError("links: must be a list")
    at = _time(payload, "timestamp") or round_to_ms(context.now)
    return PostedReport(
        ReportedChange(
            kind=ChangeKind.DEPLOY.value,
            title=_clean(_text(payload, "summary"), MAX_TITLE) or "",
            starts=at,
            ends=at,
            segment=context.segment[0],
            segment_value=context.segment[1],
            author=_clean(_text(payload, "source"), MAX_NAME),
            link=_select_link(*(link.get("href") for link in links if isinstance(link, dict))),
        )
    )


def _select_link(*links: Any) -> str | None:
    """Return the first of another system's links that can be used."""
    return next((link for link in links if isinstance(link, str) and is_usable_link(link)), None)


def _object(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    if not isinstance(value, dict):
        raise ReportedChangeError(f"{name}: must be an object")
    return value


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise ReportedChangeError(f"{name}: must be text")
    return value


def _integer(document: Mapping[str, Any], name: str) -> int | None:
    value = document.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ReportedChangeError(f"{name}: must be a whole number")
    return value


def _required_integer(document: Mapping[str, Any], name: str) -> int:
    value = _integer(document, name)
    if value is None:
        raise ReportedChangeError(f"{name}: is missing")
    return value


def _time(document: Mapping[str, Any], name: str) -> datetime | None:
    text = _text(document, name)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ReportedChangeError(
            f"{name}: {_shorten(text)!r} is not a time with its zone, such as 2026-03-02T10:00:00Z"
        )
    return round_to_ms(at)


def _required_time(document: Mapping[str, Any], name: str) -> datetime:
    at = _time(document, name)
    if at is None:
        raise ReportedChangeError(f"{name}: is missing")
    return at


def _clean(text: str | None, limit: int) -> str | None:
    """Return a text of another system in one line; a longer one is cut."""
    line = _CONTROL.sub(" ", text or "").strip()
    return (line if len(line) <= limit else f"{line[: limit - 1]}…") or None


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
