"""A person is told what came of a case, above all of what was refused or failed.

Motivation: whoever acts may be a script at night, and what it was not allowed to do is left for somebody.

Approach: the fleet's notifiers are told as of findings. One broker and action is one incident: a refusal or a
failure opens it, what is done or undone later closes it.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

import urllib3

from fleetgauge_operations.mitigation.case import Case, Outcome
from fleetgauge_operations.receivers import Outcome as Posted
from fleetgauge_operations.receivers import (
    host,
    pagerduty_resolve,
    pagerduty_trigger,
    plain,
    posted,
    posting,
    routing_key,
    slack_message,
    url,
)
from fleetgauge_probes.fleet import Notifier, SecretError

_log = logging.getLogger("fleetgauge.mitigate")

#: A person waits for it at a terminal.
_PAUSES_S = (1.0, 3.0)
#: Alertmanager keeps it for so long, as nobody says it again.
_HOLDS = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class News:
    """What came of doing or undoing something, at ``at``; ``words``: why it was refused, what failed.

    ``over``: nobody is wanted any more, since the broker got well without.
    """

    case: Case
    outcome: Outcome
    words: tuple[str, ...]
    at: datetime
    undoing: bool = False
    over: bool = False

    @classmethod
    def of(cls, case: Case, at: datetime, *, undoing: bool = False, over: bool = False) -> Self:
        """As the case ended."""
        return cls(case, case.outcome, case.words, at, undoing, over)

    @property
    def opens(self) -> bool:
        """Whether somebody is wanted."""
        return not self.over and self.outcome in (Outcome.ADVISED, Outcome.REFUSED, Outcome.FAILED)

    @property
    def kind(self) -> str:
        return f"MITIGATION_{self.outcome.upper()}"

    @property
    def incident(self) -> str:
        """The same for all of one broker and action."""
        return f"mitigate/{self.case.cluster_id}/{self.case.broker_id}/{self.case.action}"

    @property
    def summary(self) -> str:
        """In one line."""
        case, what = self.case, "undoing " if self.undoing and self.opens else ""
        why = f": {self.words[0]}" if self.words else ""
        if self.over:
            why = ": over, the broker is well"
        return f"{case.cluster_id}: {what}{case.action} of broker {case.broker_id} {self.outcome}{why}"

    def severity(self, notifier: Notifier) -> str:
        """``page`` where something was changed and is not as it should be."""
        if notifier.burn_in:
            return "burn-in"
        return "page" if self.outcome is Outcome.FAILED else "ticket"


def tell(notifiers: Iterable[Notifier], news: News, wait: Callable[[float], object]) -> list[str]:
    """The hosts of those that have taken it; of the others the log says why they have not."""
    with posting() as pool:
        return [
            host(one) for one in notifiers if one.kind != "heartbeat" and _has_taken(pool, one, news, wait)
        ]


def _has_taken(
    pool: urllib3.PoolManager, notifier: Notifier, news: News, wait: Callable[[float], object]
) -> bool:
    def attempt() -> Posted:
        where, body = url(notifier), message(notifier, news)
        return posted(pool, notifier.kind, where, body, f"case {news.case.case_id}")

    try:
        for pause_s in _PAUSES_S:
            if (outcome := attempt()) is not Posted.OUT:
                return outcome is Posted.TAKEN
            wait(pause_s)
        return attempt() is Posted.TAKEN
    except SecretError as error:
        _log.error("%s: case %s not told: %s", notifier.kind, news.case.case_id, error)
        return False


def message(notifier: Notifier, news: News) -> Any:
    """As that kind of receiver wants it. Raises SecretError."""
    severity = news.severity(notifier)
    match notifier.kind:
        case "slack":
            return _line(news, severity)
        case "pagerduty":
            return _event(news, severity, routing_key(notifier))
        case "alertmanager":
            return _alerts(news, severity)
        case _:
            return _document(news, severity)


def _document(news: News, severity: str) -> dict[str, Any]:
    case = news.case
    return {
        "id": f"{case.case_id}/{news.outcome}",
        "fingerprint": news.incident,
        "status": "firing" if news.opens else "resolved",
        "severity": severity,
        "kind": news.kind,
        "cluster": case.cluster_id,
        "broker": case.broker_id,
        "at": news.at.isoformat(),
        "summary": news.summary,
        "words": list(news.words),
        "author": case.author,
        "reason": case.reason,
    }


def _line(news: News, severity: str) -> dict[str, Any]:
    by = f"{news.at:%Y-%m-%d %H:%M:%S} UTC, {news.case.author}: {news.case.reason}"
    return slack_message(news.summary, severity if news.opens else None, map(plain, [by, *news.words[1:]]))


def _event(news: News, severity: str, key: str) -> dict[str, Any]:
    if not news.opens:
        return pagerduty_resolve(key, news.incident)
    document = _document(news, severity)
    return pagerduty_trigger(
        key,
        news.incident,
        summary=news.summary,
        severity=severity,
        cluster_id=news.case.cluster_id,
        broker_id=news.case.broker_id,
        kind=news.kind,
        at=news.at,
        details={name: document[name] for name in ("id", "words", "author", "reason")},
    )


def _alerts(news: News, severity: str) -> list[dict[str, Any]]:
    """What ends may have been opened as either."""
    ends_as = [severity] if news.opens or severity == "burn-in" else ["page", "ticket"]
    return [_alert(news, one) for one in ends_as]


def _alert(news: News, severity: str) -> dict[str, Any]:
    case = news.case
    return {
        "labels": {
            "alertname": "MITIGATION",
            "action": case.action.value,
            "cluster": case.cluster_id,
            "broker": str(case.broker_id),
            "severity": severity,
        },
        "annotations": {"summary": news.summary, "kind": news.kind, "words": "\n".join(news.words)},
        "startsAt": news.at.isoformat(),
        "endsAt": (news.at + _HOLDS if news.opens else news.at).isoformat(),
    }
