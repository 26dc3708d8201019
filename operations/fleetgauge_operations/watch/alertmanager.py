"""Findings to Prometheus' Alertmanager, by its API v2.

Motivation: an alert that is not sent again ends by itself, so whoever sends it has to go on for as long as
it holds; in return neither a lost message nor a watch that starts anew makes a difference.

Approach: all that is named now is sent again every minute, good for five; what is cleared is sent with its
end until that is taken. Labels are those of the subject and never change: by them an alert is known.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import urllib3

from fleetgauge_core.detection import Finding, Phase, Subject
from fleetgauge_operations.notify.receivers import Outcome, posted, posting
from fleetgauge_operations.watch.message_format import Manner
from fleetgauge_operations.watch.telling import LAST_WORDS_S, Telling

_AGAIN_S = 60.0
_RETRY_S = 5.0
_GOOD_FOR = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Alert:
    """A subject as it stands: what it is or was called, from when on, and since when it is over."""

    subject: Subject
    phase: Phase
    starts: datetime
    """Of one that it has already Alertmanager keeps the earliest."""
    ends: datetime | None = None
    news: Finding | None = None
    """None where an earlier watch named it."""

    def as_posted(self, now: datetime, manner: Manner) -> dict[str, Any]:
        """A PostableAlert of the API."""
        subject = self.subject
        ends = {"broker": subject.broker_id, "vantage": subject.vantage, "towards": subject.towards}
        labels = {
            "alertname": subject.chain.value,
            "cluster": subject.cluster_id,
            **{name: str(end) for name, end in ends.items() if end is not None},
            "severity": manner.severity(subject),
            "fingerprint": subject.fingerprint,
        }
        advice = manner.advice(subject, self.phase)
        around = manner.around(self.news) if self.news else []
        annotations = {
            "summary": manner.summary(subject, Phase.HEALTHY, self.phase),
            "kind": self.phase.value,
            "runbook": manner.runbook(Phase.HEALTHY, self.phase),
            **({"advice": advice} if advice else {}),
            **({"around": "\n".join(around)} if around else {}),
            **({"event_id": self.news.event.event_id} if self.news else {}),
        }
        page = manner.page(subject)
        return {
            "labels": labels,
            "annotations": annotations,
            **({"generatorURL": page} if page else {}),
            # A finding's time is of its agents' clocks: an alert that begins after its end is refused.
            "startsAt": min(self.starts, now).isoformat(),
            "endsAt": (min(self.ends, now) if self.ends else now + _GOOD_FOR).isoformat(),
        }


class Alertmanager:
    """From ``start`` to ``stop``."""

    def __init__(self, url: str, manner: Manner, telling: Telling) -> None:
        self._url = url
        self._manner = manner
        self._telling = telling
        # None is the end; a finding, one that is put off.
        self._waiting: SimpleQueue[Alert | Finding | None] = SimpleQueue()
        self._alerts: dict[Subject, Alert] = {}
        self._thread = Thread(target=self._go_on, name="alertmanager", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Say what waits, within a bound; what is named stays good for minutes, for the next watch."""
        self._waiting.put(None)
        self._thread.join(LAST_WORDS_S)

    def tell(self, finding: Finding) -> None:
        called = finding.from_phase if finding.clears else finding.to_phase
        ends = finding.event.at if finding.clears else None
        self._telling.waits(1)
        self._waiting.put(Alert(finding.subject, called, finding.event.at, ends, finding))

    def put_off(self, finding: Finding) -> None:
        self._waiting.put(finding)

    def remind(self, named: Iterable[tuple[Subject, Phase]]) -> None:
        """Go on with what an earlier watch named."""
        now = self._telling.clock()
        for subject, phase in named:
            self._waiting.put(Alert(subject, phase, now))

    def _go_on(self) -> None:
        wait_s, ending = _AGAIN_S, False
        untaken: list[Alert | Finding] = []
        with posting() as pool:
            while not ending:
                told = self._told_within(wait_s)
                ending = None in told
                for one in (each for each in told if each is not None):
                    if isinstance(one, Alert):
                        self._stands(one)
                    untaken.append(one)
                if not self._telling.may_tell():
                    return
                outcome = self._post(pool) if self._alerts else Outcome.TAKEN
                if outcome is not Outcome.OUT:
                    for one in untaken:
                        self._settle(one, taken=outcome is Outcome.TAKEN)
                    untaken = []
                    self._alerts = {subject: one for subject, one in self._alerts.items() if not one.ends}
                wait_s = _AGAIN_S if outcome is Outcome.TAKEN else _RETRY_S

    def _stands(self, one: Alert) -> None:
        before = self._alerts.get(one.subject)
        # What an earlier watch named began before this one knew of it.
        self._alerts[one.subject] = replace(one, starts=min(before.starts, one.starts)) if before else one

    def _settle(self, one: Alert | Finding, *, taken: bool) -> None:
        if isinstance(one, Finding):
            self._telling.put_off(one)
        elif one.news:
            self._telling.waits(-1)
            self._telling.dealt_with(one.news, taken)

    def _told_within(self, seconds: float) -> list[Alert | Finding | None]:
        """As soon as there is something, all that there is; nothing if so long nothing came."""
        told: list[Alert | Finding | None] = []
        with suppress(Empty):
            told.append(self._waiting.get(timeout=seconds))
            while True:
                told.append(self._waiting.get_nowait())
        return told

    def _post(self, pool: urllib3.PoolManager) -> Outcome:
        """What became of all that stands now."""
        now = self._telling.clock()
        alerts = [one.as_posted(now, self._manner) for one in self._alerts.values()]
        return posted(pool, "alertmanager", self._url, alerts, f"{len(alerts)} alerts")
