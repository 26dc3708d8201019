"""Which one of several equal processes is at work: the members of a consumer group share one seat.

Motivation: who was stopped for a while and goes on does not know what has been decided since; before it
acts it must prove that the seat is still its own.

Approach: whoever is given partition 0 of a topic has the seat. The group's coordinator takes a commit of
offsets from nobody but a member of the present generation, and lets a member's session live on from then:
so a commit that was taken proves the seat for as long as a session lasts, from the moment it was sent.
"""

import logging
from collections.abc import Sequence
from enum import StrEnum
from threading import Condition, Event, Thread

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import for_librdkafka
from fleetgauge_core.kafka.errors import code
from fleetgauge_core.runtime.uptime import uptime_ns

_log = logging.getLogger("fleetgauge.seat")

#: The shortest that brokers take unless told otherwise.
_SESSION_S = 6
#: A broker's clock may run faster than ours.
_PROVES_FOR_S = _SESSION_S - 1
_PROVE_EVERY_S = 1
_POLL_S = 0.1
_LEAVE_WITHIN_S = 10
#: Said to a member while the next generation is made, in which it may well keep its seat.
_JOINING = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)


class Standing(StrEnum):
    """Whether the seat is ours."""

    HELD = "held"
    LOST = "lost"
    """Somebody else may have it, or have had it."""
    UNKNOWN = "unknown"
    """It was ours, and nobody answers who could say whether it still is."""


class Term:
    """Our time in the seat, from when it was given to us. Once it is lost it stays so."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._lost = False
        self._proved_ns: int | None = None
        self._asked_ns: int | None = None

    @property
    def is_lost(self) -> bool:
        return self._lost

    def confirm(self, timeout_s: float = 3) -> Standing:
        """Whether it is ours now; where that is not known, after an attempt to learn it."""
        began_ns = uptime_ns()

        def decided() -> bool:
            asked_since = self._asked_ns is not None and self._asked_ns >= began_ns
            return self._lost or self._is_proved() or asked_since

        with self._changed:
            self._changed.wait_for(decided, timeout_s)
            if self._lost:
                return Standing.LOST
            return Standing.HELD if self._is_proved() else Standing.UNKNOWN

    def asked(self, began_ns: int, *, proved: bool) -> None:
        """An attempt to prove it that began then has ended."""
        with self._changed:
            self._asked_ns = began_ns
            if proved:
                self._proved_ns = began_ns
            self._changed.notify_all()

    def lose(self) -> None:
        with self._changed:
            self._lost = True
            self._changed.notify_all()

    def _is_proved(self) -> bool:
        return self._proved_ns is not None and uptime_ns() - self._proved_ns < _PROVES_FOR_S * 1_000_000_000


class Seat:
    """Asks for the seat from ``start`` to ``stop``, and proves in a thread of its own that it has it."""

    def __init__(self, access: Access, topic: str, group: str | None = None) -> None:
        """``topic``: of any content; ``group``: of its name, unless it has seats of several kinds."""
        self._access = access
        self._place = TopicPartition(topic, 0, 0)
        self._group = group or topic
        own = {"group.id": self._group, "client.id": self._group, "session.timeout.ms": _SESSION_S * 1000}
        self._settings = client_settings.CONNECTION | client_settings.SEAT | own
        self._stopping = Event()
        self._given = Event()
        self._term: Term | None = None
        self._member = False
        self._prove_at_ns = 0
        self._trouble: str | None = None

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        self._consumer = Consumer(self._settings | for_librdkafka(self._access))
        self._consumer.subscribe(
            [self._place.topic], on_assign=self._give, on_revoke=self._take_back, on_lost=self._lose_sight
        )
        self._thread = Thread(target=self._go_on, name="seat", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> Term | None:
        """Our term, if it has begun within that time."""
        self._given.wait(timeout_s)
        return self._term

    def stop(self) -> None:
        """Leave the seat to the next one at once; where nobody answers, without a word after a while."""
        self._stopping.set()
        self._thread.join(_LEAVE_WITHIN_S)
        self._lose()

    def _go_on(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(_POLL_S)
            if message and (error := message.error()):
                self._log(error)
            began_ns, term = uptime_ns(), self._term
            if term and began_ns >= self._prove_at_ns:
                self._prove_at_ns = began_ns + _PROVE_EVERY_S * 1_000_000_000
                standing = self._proof()
                if standing is Standing.LOST:
                    self._lose()
                else:
                    term.asked(began_ns, proved=standing is Standing.HELD)
        self._consumer.close()

    def _proof(self) -> Standing:
        try:
            self._consumer.commit(offsets=[self._place], asynchronous=False)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError.UNKNOWN_MEMBER_ID:
                return Standing.LOST
            if error.code() in _JOINING:
                return self._of_answer(Standing.UNKNOWN)
            self._log(error)
            return Standing.UNKNOWN
        self._trouble = None
        return self._of_answer(Standing.HELD)

    def _of_answer(self, to_member: Standing) -> Standing:
        """To one that lost sight of its group any answer says that it could have been seen."""
        return to_member if self._member else Standing.LOST

    def _give(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(partitions))
        # What is in the topic is nobody's business here.
        consumer.pause(list(partitions))
        if self._is_among(partitions):
            self._lose()
            self._member, self._term, self._prove_at_ns = True, Term(), 0
            self._given.set()

    def _take_back(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        consumer.incremental_unassign(list(partitions))
        if self._is_among(partitions):
            self._lose()

    def _lose_sight(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Our session is over by our own clock; whether anybody knows is to be seen."""
        consumer.incremental_unassign(list(partitions))
        if self._is_among(partitions):
            self._member = False

    def _is_among(self, partitions: Sequence[TopicPartition]) -> bool:
        return any(one.partition == self._place.partition for one in partitions)

    def _lose(self) -> None:
        if self._term:
            self._term.lose()
        self._given.clear()
        self._member, self._term = False, None

    def _log(self, error: KafkaError) -> None:
        """Each trouble once, until it is over."""
        if self._trouble != code(error):
            self._trouble = code(error)
            _log.warning("the group %s cannot be asked: %s", self._group, error.str())
