"""What operations tell people, by the fleet's notifiers: the same incident under the same key everywhere."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

import urllib3

from fleetgauge_core.fleet import Notifier, SecretError
from fleetgauge_operations.notify.receivers import (
    Outcome,
    host,
    name,
    pagerduty_resolve,
    pagerduty_trigger,
    plain,
    posted,
    posting,
    routing_key,
    slack_message,
    url,
)

_log = logging.getLogger("fleetgauge.notify")

#: A person waits for it at a terminal.
_PAUSES_S = (1.0, 3.0)
#: Alertmanager keeps it for so long, unless it is said again.
_HOLDS = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Bulletin:
    """``incident``: the same from when it opens to when it is over. ``severity``: what it opens as.

    ``alert`` and ``labels`` are Alertmanager's, and never of a value. ``details`` go to whoever takes JSON.
    """

    bulletin_id: str
    incident: str
    opens: bool
    severity: Literal["page", "ticket"]
    kind: str
    cluster_id: str
    at: datetime
    summary: str
    words: tuple[str, ...]
    byline: str
    alert: str
    broker_id: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def severity_at(self, notifier: Notifier) -> str:
        return "burn-in" if notifier.burn_in else self.severity


def tell(
    notifiers: Iterable[Notifier],
    bulletin: Bulletin,
    wait: Callable[[float], object],
    but: Collection[str] = (),
) -> list[str]:
    """Who has taken it, ``but`` those, by host; of the others the log says why they have not."""
    told: list[str] = []
    people = _people(notifiers)
    with posting() as pool:
        for one in people:
            try:
                who = _who(one, people)
            except SecretError as error:
                _log.error("%s: %s not told: %s", one.kind, bulletin.bulletin_id, error)
                continue
            if who not in but and _has_taken(pool, one, bulletin, wait):
                told.append(who)
    return told


def hosts(notifiers: Iterable[Notifier]) -> frozenset[str]:
    """Who is to be told, as far as it is known now."""
    found: set[str] = set()
    people = _people(notifiers)
    for one in people:
        with suppress(SecretError):
            found.add(_who(one, people))
    return frozenset(found)


def _people(notifiers: Iterable[Notifier]) -> Sequence[Notifier]:
    return [one for one in notifiers if one.kind != "heartbeat"]


def _who(notifier: Notifier, people: Iterable[Notifier]) -> str:
    """By host, and by what tells it from others that have the same: a channel each. Raises SecretError."""
    where = host(notifier)
    return (
        f"{where} {name(notifier)[:6]}" if any(_is_another(one, notifier, where) for one in people) else where
    )


def _is_another(one: Notifier, notifier: Notifier, where: str) -> bool:
    with suppress(SecretError):
        return name(one) != name(notifier) and host(one) == where
    return False


def _has_taken(
    pool: urllib3.PoolManager, notifier: Notifier, bulletin: Bulletin, wait: Callable[[float], object]
) -> bool:
    for pause_s in _PAUSES_S:
        if (outcome := post(pool, notifier, bulletin)) is not Outcome.OUT:
            return outcome is Outcome.TAKEN
        wait(pause_s)
    return post(pool, notifier, bulletin) is Outcome.TAKEN


def post(pool: urllib3.PoolManager, notifier: Notifier, bulletin: Bulletin) -> Outcome:
    """Once."""
    try:
        where, body = url(notifier), message(notifier, bulletin)
    except SecretError as error:
        _log.error("%s: %s not told: %s", notifier.kind, bulletin.bulletin_id, error)
        return Outcome.REFUSED
    return posted(pool, notifier.kind, where, body, bulletin.bulletin_id)


def message(notifier: Notifier, bulletin: Bulletin) -> Any:
    """As that kind of receiver wants it. Raises SecretError."""
    severity = bulletin.severity_at(notifier)
    match notifier.kind:
        case "slack":
            lines = map(plain, [bulletin.byline, *bulletin.words[1:]])
            return slack_message(bulletin.summary, severity if bulletin.opens else None, lines)
        case "pagerduty":
            return _event(bulletin, severity, routing_key(notifier))
        case "alertmanager":
            return _alerts(bulletin, severity)
        case _:
            return _document(bulletin, severity)


def _document(bulletin: Bulletin, severity: str) -> dict[str, Any]:
    return {
        "id": bulletin.bulletin_id,
        "fingerprint": bulletin.incident,
        "status": "firing" if bulletin.opens else "resolved",
        "severity": severity,
        "kind": bulletin.kind,
        "cluster": bulletin.cluster_id,
        "broker": bulletin.broker_id,
        "at": bulletin.at.isoformat(),
        "summary": bulletin.summary,
        "words": list(bulletin.words),
        **bulletin.details,
    }


def _event(bulletin: Bulletin, severity: str, key: str) -> dict[str, Any]:
    if not bulletin.opens:
        return pagerduty_resolve(key, bulletin.incident)
    return pagerduty_trigger(
        key,
        bulletin.incident,
        summary=bulletin.summary,
        severity=severity,
        cluster_id=bulletin.cluster_id,
        broker_id=bulletin.broker_id,
        kind=bulletin.kind,
        at=bulletin.at,
        details={"id": bulletin.bulletin_id, "words": list(bulletin.words), **bulletin.details},
    )


def _alerts(bulletin: Bulletin, severity: str) -> list[dict[str, Any]]:
    """What ends may have been opened as either."""
    ends_as = [severity] if bulletin.opens or severity == "burn-in" else ["page", "ticket"]
    return [_alert(bulletin, one) for one in ends_as]


def _alert(bulletin: Bulletin, severity: str) -> dict[str, Any]:
    broker = {} if bulletin.broker_id is None else {"broker": str(bulletin.broker_id)}
    return {
        "labels": {
            "alertname": bulletin.alert,
            "cluster": bulletin.cluster_id,
            "severity": severity,
            **broker,
            **bulletin.labels,
        },
        "annotations": {
            "summary": bulletin.summary,
            "kind": bulletin.kind,
            "words": "\n".join(bulletin.words),
        },
        "startsAt": bulletin.at.isoformat(),
        "endsAt": (bulletin.at + _HOLDS if bulletin.opens else bulletin.at).isoformat(),
    }
