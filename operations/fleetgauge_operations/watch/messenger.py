"""Findings to whoever is told of each change once: in their order, and again until it is taken.

Motivation: a receiver may be out for an hour, and the watch be killed or replaced meanwhile. The page must
come all the same, and whoever has it must not get it again under another name.

Approach: what has been told is kept beside the findings, so that the next watch goes on from there with the
same words and ids. Before each POST the watch proves that it is still the one that tells.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from threading import Event, Thread

import urllib3

from fleetgauge_core.detection import Finding, Phase, Subject
from fleetgauge_core.fleet import SecretError
from fleetgauge_operations.notify.receivers import Outcome, posted, posting
from fleetgauge_operations.watch.telling import LAST_WORDS_S, Telling

_log = logging.getLogger("fleetgauge.watch")

_LISTEN_S = 0.5
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
#: What has changed again by then is history, and what is true now waits behind it.
GIVE_UP_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Message:
    """Where to, and what."""

    url: str
    body: object


class Messenger:
    """POSTs from a thread of its own, from ``start`` to ``stop``: a slow receiver delays nobody.

    ``write`` makes the message of a finding; it may raise SecretError.
    """

    def __init__(self, kind: str, write: Callable[[Finding], Message], telling: Telling) -> None:
        self._kind = kind
        self._write = write
        self._telling = telling
        #: Since when; of what is only put off, never.
        self._waiting: SimpleQueue[tuple[Finding, datetime | None]] = SimpleQueue()
        self._latest: dict[Subject, Finding] = {}
        self._stopping = Event()
        self._thread = Thread(target=self._go_on, name=kind, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Say what waits, within a bound; what a receiver does not take now is left to the next watch."""
        self._stopping.set()
        self._thread.join(LAST_WORDS_S)

    def tell(self, finding: Finding) -> None:
        self._telling.waits(1)
        self._latest[finding.subject] = finding
        self._waiting.put((finding, self._telling.clock()))

    def put_off(self, finding: Finding) -> None:
        self._waiting.put((finding, None))

    def remind(self, named: Iterable[tuple[Subject, Phase]]) -> None:
        """It was told of each when it was found."""

    def _go_on(self) -> None:
        with posting() as pool:
            while not (self._stopping.is_set() and self._waiting.empty()):
                try:
                    finding, since = self._waiting.get(timeout=_LISTEN_S)
                except Empty:
                    continue
                if since is None:
                    self._telling.put_off(finding)
                    continue
                outcome = self._delivered(pool, finding, since)
                if outcome is None:
                    return
                self._telling.waits(-1)
                self._telling.dealt_with(finding, outcome is Outcome.TAKEN)

    def _delivered(self, pool: urllib3.PoolManager, finding: Finding, since: datetime) -> Outcome | None:
        """None where it is left to the next watch."""
        pause_s = _FIRST_PAUSE_S
        while self._telling.may_tell():
            if self._is_history(finding, since):
                _log.error("%s: event %s given up", self._kind, finding.event.event_id)
                return Outcome.OUT
            outcome = self._post(pool, finding)
            if outcome is not Outcome.OUT:
                return outcome
            if self._stopping.wait(pause_s):
                break
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return None

    def _is_history(self, finding: Finding, since: datetime) -> bool:
        """How a subject stands now is never given up: somebody is to hear of it, or of its end."""
        changed_again = self._latest[finding.subject] is not finding
        return changed_again and self._telling.clock() - since > GIVE_UP_AFTER

    def _post(self, pool: urllib3.PoolManager, finding: Finding) -> Outcome:
        what = f"event {finding.event.event_id}"
        try:
            message = self._write(finding)
        except SecretError as error:
            _log.error("%s: %s not delivered: %s", self._kind, what, error)
            return Outcome.OUT
        return posted(pool, self._kind, message.url, message.body, what)
