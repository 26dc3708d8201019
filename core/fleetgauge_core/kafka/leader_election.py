"""Leader election among equal processes, by membership of a consumer group.

Motivation: a process that was paused does not know whether another process has been elected since; before
it acts it must prove that it is still the leader.

Approach: the member to which the group assigns partition 0 of a topic is the leader. The group coordinator
accepts an offset commit only from a member of the current generation, and a commit also extends the
member's session. An accepted commit therefore proves leadership for one session timeout, counted from the
moment when the commit was sent.
"""

import logging
from collections.abc import Sequence
from enum import StrEnum
from threading import Condition, Event, Thread

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from fleetgauge_core.contract.failure_codes import AgentFault, find_agent_fault
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import client_settings
from fleetgauge_core.kafka.credentials import build_librdkafka_settings
from fleetgauge_core.kafka.errors import error_code
from fleetgauge_core.kafka.own_resources import explain_creation_errors
from fleetgauge_core.runtime.uptime import uptime_ns

_log = logging.getLogger("fleetgauge.seat")

_SECOND_NS = 1_000_000_000
#: The lowest group.min.session.timeout.ms that brokers accept by default.
_SESSION_TIMEOUT_S = 6
#: Shorter than a session, because the coordinator's clock may run faster than this machine's.
_PROOF_VALID_FOR_S = _SESSION_TIMEOUT_S - 1
_PROOF_INTERVAL_S = 1
_POLL_S = 0.1
_STOP_TIMEOUT_S = 10
#: Errors of a commit during a rebalance, after which the member may well keep the partition.
_REBALANCE_CODES = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)


class LeadershipStatus(StrEnum):
    """Whether this process is the leader."""

    HELD = "held"
    LOST = "lost"
    """Another process may be the leader, or may have been."""
    UNKNOWN = "unknown"
    """This process was the leader, and the coordinator does not answer whether it still is."""


class Leadership:
    """One period of leadership, from the assignment of the partition until its loss, which is final."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._lost = False
        self._proved_ns: int | None = None
        self._attempted_ns: int | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the leadership is known to be lost."""
        return self._lost

    def confirm(self, timeout_s: float = 3) -> LeadershipStatus:
        """Return the present status; without a valid proof, wait for the next attempt to prove it."""
        called_ns = uptime_ns()

        def is_decided() -> bool:
            attempted_since = self._attempted_ns is not None and self._attempted_ns >= called_ns
            return self._lost or self._is_proved() or attempted_since

        with self._changed:
            self._changed.wait_for(is_decided, timeout_s)
            if self._lost:
                return LeadershipStatus.LOST
            return LeadershipStatus.HELD if self._is_proved() else LeadershipStatus.UNKNOWN

    def record_attempt(self, started_ns: int, *, proved: bool) -> None:
        """Record the result of an attempt to prove the leadership, by the uptime of its start."""
        with self._changed:
            self._attempted_ns = started_ns
            if proved:
                self._proved_ns = started_ns
            self._changed.notify_all()

    def mark_lost(self) -> None:
        """End this period of leadership for good."""
        with self._changed:
            self._lost = True
            self._changed.notify_all()

    def _is_proved(self) -> bool:
        return self._proved_ns is not None and uptime_ns() - self._proved_ns < _PROOF_VALID_FOR_S * _SECOND_NS


class LeaderElection:
    """A candidate from ``start`` to ``stop``; as leader it proves its leadership every second in a thread."""

    def __init__(self, access: ClusterAccess, topic: str, group: str | None = None) -> None:
        """Any topic will do. The group is named like the topic unless several elections share the topic."""
        self._access = access
        self._partition = TopicPartition(topic, 0, 0)
        self._group = group or topic
        identity = {
            "group.id": self._group,
            "client.id": self._group,
            "session.timeout.ms": _SESSION_TIMEOUT_S * 1000,
        }
        self._settings = client_settings.CONNECTION | client_settings.LEADER_ELECTION | identity
        self._stopping = Event()
        self._elected = Event()
        self._leadership: Leadership | None = None
        self._is_member = False
        self._next_proof_ns = 0
        self._logged_error: str | None = None

    def start(self) -> None:
        """Join the group. Raises: KafkaUnavailableError if secrets cannot be read."""
        settings = self._settings | build_librdkafka_settings(self._access)
        with explain_creation_errors(self._access):
            self._consumer = Consumer(settings)
        self._consumer.subscribe(
            [self._partition.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        self._thread = Thread(target=self._run, name="leader-election", daemon=True)
        self._thread.start()

    def wait_for_leadership(self, timeout_s: float) -> Leadership | None:
        """Return the leadership, or None if this process is not elected within ``timeout_s``."""
        self._elected.wait(timeout_s)
        return self._leadership

    def stop(self) -> None:
        """Leave the group, so that another member is elected at once; wait 10 s at most."""
        self._stopping.set()
        self._thread.join(_STOP_TIMEOUT_S)
        self._end_leadership()

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(_POLL_S)
            if message and (error := message.error()):
                self._log(error)
            started_ns, leadership = uptime_ns(), self._leadership
            if leadership and started_ns >= self._next_proof_ns:
                self._next_proof_ns = started_ns + _PROOF_INTERVAL_S * _SECOND_NS
                status = self._prove()
                if status is LeadershipStatus.LOST:
                    self._end_leadership()
                else:
                    leadership.record_attempt(started_ns, proved=status is LeadershipStatus.HELD)
        self._consumer.close()

    def _prove(self) -> LeadershipStatus:
        """Commit an offset; the coordinator's response shows whether this member is still in the group."""
        try:
            self._consumer.commit(offsets=[self._partition], asynchronous=False)
        except KafkaException as raised:
            error: KafkaError = raised.args[0]
            if error.code() == KafkaError.UNKNOWN_MEMBER_ID:
                return LeadershipStatus.LOST
            if error.code() in _REBALANCE_CODES:
                return self._status_after_answer(LeadershipStatus.UNKNOWN)
            self._log(error)
            return LeadershipStatus.UNKNOWN
        self._logged_error = None
        return self._status_after_answer(LeadershipStatus.HELD)

    def _status_after_answer(self, status_of_member: LeadershipStatus) -> LeadershipStatus:
        """Return LOST after a local session timeout: the coordinator may have elected another member."""
        return status_of_member if self._is_member else LeadershipStatus.LOST

    def _on_assign(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(partitions))
        # The topic's records are not needed.
        consumer.pause(list(partitions))
        if self._includes_election_partition(partitions):
            self._end_leadership()
            self._is_member, self._leadership, self._next_proof_ns = True, Leadership(), 0
            self._elected.set()

    def _on_revoke(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        consumer.incremental_unassign(list(partitions))
        if self._includes_election_partition(partitions):
            self._end_leadership()

    def _on_lost(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """Handle a session timeout by the local clock: the coordinator may not have noticed it."""
        consumer.incremental_unassign(list(partitions))
        if self._includes_election_partition(partitions):
            self._is_member = False

    def _includes_election_partition(self, partitions: Sequence[TopicPartition]) -> bool:
        return any(partition.partition == self._partition.partition for partition in partitions)

    def _end_leadership(self) -> None:
        if self._leadership:
            self._leadership.mark_lost()
        self._elected.clear()
        self._is_member, self._leadership = False, None

    def _log(self, error: KafkaError) -> None:
        """Log an error once, until the coordinator answers again."""
        if self._logged_error != error_code(error):
            self._logged_error = error_code(error)
            problem = (
                "this process may not join it"
                if find_agent_fault(error_code(error)) is AgentFault.RIGHTS
                else "the coordinator does not answer"
            )
            _log.warning("consumer group %s: %s: %s", self._group, problem, error.str())
