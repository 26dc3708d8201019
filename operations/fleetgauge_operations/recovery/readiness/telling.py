"""Findings as rows and as bulletins, and a tray from which they go out."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import urllib3

from fleetgauge_core.fleet import Notifier
from fleetgauge_operations.notify.notification import Bulletin, post
from fleetgauge_operations.notify.receivers import Outcome, posting
from fleetgauge_operations.recovery.readiness.plan.conditions import Condition, Kind, Whom
from fleetgauge_operations.recovery.readiness.plan.findings import Finding
from fleetgauge_operations.recovery.readiness.plan.minutes import Row

_log = logging.getLogger("fleetgauge.recover")

_RUNBOOK = "docs/runbooks/recovery.md"
#: By then whoever was to be told knows otherwise.
GIVE_UP_AFTER = timedelta(hours=1)


def row_of(finding: Finding) -> Row:
    """As recovery/findings keeps it."""
    one = finding.condition
    return {
        "fingerprint": finding.fingerprint,
        "at": finding.at,
        "opens": finding.opens,
        "kind": one.whom.kind.value,
        "severity": one.whom.kind.severity,
        "cluster_id": one.whom.cluster,
        "other_id": one.whom.other,
        "subject": one.whom.subject,
        "summary": one.summary,
        "evidence": json.dumps({"words": one.words, **one.evidence}, default=str),
    }


def last_told(rows: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """What was told last of each; what a newer version told of is left to that."""
    newest: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        newest[row["fingerprint"]] = row
    return [_recalled(row) for row in newest.values() if row["kind"] in set(Kind)]


def _recalled(row: Mapping[str, Any]) -> Finding:
    whom = Whom(Kind(row["kind"]), row["cluster_id"], row["other_id"] or "", row["subject"] or "")
    evidence = json.loads(row["evidence"])
    words = tuple(evidence.pop("words", ()))
    return Finding(Condition(whom, row["summary"], words, evidence), row["at"], row["opens"])


def bulletin_of(finding: Finding, page_url: str | None) -> Bulletin:
    """``page_url``: of `fleetgauge dash`, None where nobody said it."""
    one = finding.condition
    whom = one.whom
    page = {"page": f"{page_url.rstrip('/')}/recovery"} if page_url else {}
    return Bulletin(
        bulletin_id=f"{finding.fingerprint}/{finding.at.isoformat()}/{'opens' if finding.opens else 'over'}",
        incident=finding.fingerprint,
        opens=finding.opens,
        severity=whom.kind.severity,
        kind=whom.kind.value,
        cluster_id=whom.cluster,
        at=finding.at,
        summary=one.summary if finding.opens else f"over: {one.summary}",
        words=(one.summary, *one.words),
        byline=f"{finding.at:%Y-%m-%d %H:%M:%S} UTC",
        alert=whom.kind.value,
        labels={name: of for name, of in (("other", whom.other), ("subject", whom.subject)) if of},
        details={"runbook": _RUNBOOK, "evidence": dict(one.evidence), **page},
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    notifier: Notifier
    bulletin: Bulletin
    since: datetime


class Tray:
    """What is to be told goes out with each turn, to each notifier in its order, until it is taken."""

    def __init__(self, notifiers: Iterable[Notifier], page_url: str | None) -> None:
        self._notifiers = [one for one in notifiers if one.kind != "heartbeat"]
        self._page_url = page_url
        self._waiting: list[_Waiting] = []

    def put(self, finding: Finding, now: datetime, kinds: Sequence[str] = ()) -> None:
        """For all notifiers, or those of some kinds."""
        bulletin = bulletin_of(finding, self._page_url)
        self._waiting += [
            _Waiting(one, bulletin, now) for one in self._notifiers if not kinds or one.kind in kinds
        ]

    def send(self, now: datetime) -> None:
        """One that is out is left alone until the next turn."""
        out: list[Notifier] = []
        left = []
        with posting() as pool:
            for one in self._waiting:
                if one.notifier in out or not self._is_done(pool, one, now):
                    out.append(one.notifier)
                    left.append(one)
        self._waiting = left

    def _is_done(self, pool: urllib3.PoolManager, one: _Waiting, now: datetime) -> bool:
        if post(pool, one.notifier, one.bulletin) is not Outcome.OUT:
            return True
        if now - one.since > GIVE_UP_AFTER:
            _log.error("%s: %s given up", one.notifier.kind, one.bulletin.bulletin_id)
            return True
        return False
