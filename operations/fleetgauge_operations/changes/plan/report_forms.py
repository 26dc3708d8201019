"""The forms in which other systems report changes by HTTP, as reported changes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from fleetgauge_core.contract.json_fields import JsonFieldError, read_integer, read_text, read_time
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

Value = TypeVar("Value")

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

    Raises: JsonFieldError or ReportedChangeError with the first field that cannot be accepted.
    """
    if unknown := sorted(set(document) - _OWN_KEYS):
        fields = ", ".join(sorted(_OWN_KEYS))
        raise ReportedChangeError(f"{_shorten(unknown[0])!r} is no field of a change; those are {fields}")
    cluster_id, named = read_text(document, "cluster"), read_text(document, "segment")
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
        kind=read_text(document, "kind") or ChangeKind.OTHER.value,
        title=read_text(document, "title") or "",
        starts=starts,
        ends=_time(document, "to") or starts,
        cluster_id=cluster_id,
        broker_id=read_integer(document, "broker"),
        segment=None if cluster_id is not None else segment[0],
        segment_value=None if cluster_id is not None else segment[1],
        author=read_text(document, "author"),
        link=read_text(document, "link"),
    )
    return PostedReport(change, read_text(document, "id") or None)


def parse_github(document: Mapping[str, Any], context: ReportContext) -> PostedReport | None:
    """Return the change in a webhook of GitHub for a deployment, or for the status in which it has ended.

    The documentation of GitHub's events ``deployment`` and ``deployment_status`` describes them. Raises:
    JsonFieldError or ReportedChangeError with the first field that cannot be accepted.
    """
    if context.event not in ("deployment", "deployment_status"):
        return None
    deployment, repository = _object(document, "deployment"), _object(document, "repository")
    status = _object(document, "deployment_status") if context.event == "deployment_status" else {}
    state = read_text(status, "state")
    if status and state not in _FINAL_STATES:
        return None
    creator = _object(deployment, "creator") if deployment.get("creator") else {}
    starts = _require(_time(deployment, "created_at"), "created_at")
    name = " ".join(filter(None, (read_text(repository, "full_name"), read_text(deployment, "ref"))))
    place = f" to {environment}" if (environment := read_text(deployment, "environment")) else ""
    change = ReportedChange(
        kind=ChangeKind.DEPLOY.value,
        title=_clean(f"{name}{place}{f': {state}' if state else ''}", MAX_TITLE) or "",
        starts=starts,
        ends=_require(_time(status, "created_at"), "created_at") if status else starts,
        segment=context.segment[0],
        segment_value=context.segment[1],
        author=_clean(read_text(creator, "login"), MAX_NAME),
        link=_select_link(status.get("target_url"), status.get("log_url"), repository.get("html_url")),
    )
    return PostedReport(change, f"deployment {_require(read_integer(deployment, 'id'), 'id')}", change.ends)


def parse_pagerduty(document: Mapping[str, Any], context: ReportContext) -> PostedReport | None:
    """Return the change in a change event of PagerDuty's Events API v2.

    Raises: JsonFieldError or ReportedChangeError with the first field that cannot be accepted.
    """
    payload, links = _object(document, "payload"), document.get("links") or []
    if not isinstance(links, list):
        raise ReportedChangeError("links: must be a list")
    at = _time(payload, "timestamp") or round_to_ms(context.now)
    return PostedReport(
        ReportedChange(
            kind=ChangeKind.DEPLOY.value,
            title=_clean(read_text(payload, "summary"), MAX_TITLE) or "",
            starts=at,
            ends=at,
            segment=context.segment[0],
            segment_value=context.segment[1],
            author=_clean(read_text(payload, "source"), MAX_NAME),
            link=_select_link(*(link.get("href") for link in links if isinstance(link, dict))),
        )
    )


def _select_link(*links: Any) -> str | None:
    """Return the first of another system's links that can be used."""
    return next((link for link in links if isinstance(link, str) and is_usable_link(link)), None)


def _object(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    if not isinstance(value, dict):
        raise JsonFieldError(f"{name}: must be an object")
    return value


def _time(document: Mapping[str, Any], name: str) -> datetime | None:
    at = read_time(document, name)
    return None if at is None else round_to_ms(at)


def _require(value: Value | None, name: str) -> Value:
    if value is None:
        raise JsonFieldError(f"{name}: is missing")
    return value


def _clean(text: str | None, limit: int) -> str | None:
    """Return a text of another system in one line; a longer one is cut."""
    line = _CONTROL.sub(" ", text or "").strip()
    return (line if len(line) <= limit else f"{line[: limit - 1]}…") or None


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
