"""Probes one cluster: threads around the pure parts.

Flow: the observer learns who is registered, where the partitions lie and who
is in sync, and has the topic put right; the scheduler sends what is due; delivery
reports, consumed records and routing looks feed the ledgers; ``tick`` takes
closed minutes and pulses out of them, and says how open minutes stand. One lock
guards the ledgers and views; nothing that can block is done under it, and no round
of all brokers: a probe that is due waits for it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from uuid import UUID

from fleetgauge_core.contract import (
    BrokerPulse,
    Leg,
    ProbeMinute,
    ProbePulse,
)
from fleetgauge_core.fleet import Cluster
from fleetgauge_core.kafka import (
    Admin,
    KafkaTurnedAwayError,
    KafkaUnavailableError,
    ProbeProducer,
    Registration,
    Route,
    TopicReader,
    cold_answer,
    ensure_usable,
    registered_brokers,
    tls_context,
)
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_probes.agent.broker_progress import Counters, Progress
from fleetgauge_probes.agent.cluster_report import Report
from fleetgauge_probes.agent.cold_bootstraps import Bootstraps
from fleetgauge_probes.agent.cold_connections import Answers
from fleetgauge_probes.agent.demotions import Demotions
from fleetgauge_probes.agent.failure_code import failure_code
from fleetgauge_probes.agent.leader_eligibility import Standing, standing
from fleetgauge_probes.agent.minute import Identity, Subject, probe_minute
from fleetgauge_probes.agent.payload import ProbeName, pack, unpack
from fleetgauge_probes.agent.probe_tracker import WINDOW_NS, LegLedger, MinuteTally
from fleetgauge_probes.agent.process_pauses import Stalls
from fleetgauge_probes.agent.reconciler import Reconciler
from fleetgauge_probes.agent.schedule import TOO_LATE_NS, MinuteClock, Timetable, phase_ns
from fleetgauge_probes.agent.throttles import Throttles
from fleetgauge_probes.agent.topic_plan import TOPIC, Home, Partition, home_partitions

_log = logging.getLogger("fleetgauge.probe")

T = TypeVar("T")
#: A broker's leg.
Key = tuple[int, Leg]

_SECOND_NS = 1_000_000_000
_OBSERVE_EVERY_S = 1.0
_REGISTER_EVERY_S = 10.0
_REGISTER_AGAIN_S = 1.0
_ANSWER_TIMEOUT_S = 1.0
_WARM_UP_NS = 10 * _SECOND_NS
_PULSE_EVERY_NS = 5 * _SECOND_NS
#: After a stall that long nothing is known of the brokers until they had a moment to show themselves.
_LONG_STALL_NS = _SECOND_NS
#: Each tick says of a part of the ledgers how their open minutes stand, so that it never takes long.
_TICKS_A_ROUND = 20
#: A tick closes about so many minutes: all end at once, and what closing them takes is spread.
_MOST_CLOSED = 50
#: A lock that is let go and taken again at once never reaches who waits for it, so after so many legs or
#: brokers a round pauses for so long.
_AT_A_TIME = 10
_PAUSE_S = 0.001


@dataclass(slots=True)
class _Warmth:
    """A home whose path is being warmed up before anything counts."""

    since_ns: int
    legs: set[Leg] = field(default_factory=set)
    received: bool = False

    def over(self, now_ns: int) -> bool:
        """Warm, or so long tried that the silence itself must be measured."""
        return (self.received and len(self.legs) == len(Leg)) or now_ns - self.since_ns > _WARM_UP_NS


class ClusterProbe:
    """One cluster's probing, from ``start`` to ``stop``. By its ``probe_id`` it knows its own messages."""

    def __init__(
        self,
        cluster: Cluster,
        who: Identity,
        probe_id: UUID,
        clock: MinuteClock,
        stalls: Stalls,
        sequences: Iterator[int],
        broken: Callable[[], None],
        marked: Callable[[], frozenset[int]],
    ) -> None:
        self._cluster = cluster
        self._who = who
        self._probe_id = probe_id
        self._clock = clock
        self._stalls = stalls
        self._sequences = sequences
        self._broken = broken
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._opened = False
        self.access = cluster.access
        """How it reaches its cluster, for as long as it lives."""
        self._producers = {
            Leg.CLIENT: ProbeProducer(self.access, TOPIC, "all", self._throttled),
            Leg.LEADER: ProbeProducer(self.access, TOPIC, "1", self._throttled, self._routed),
        }
        self._reader = TopicReader(self.access, TOPIC, "fleetgauge-probe-consumer")
        self._admin = Admin(self.access, timeout_s=1.5)
        self._reconciler = Reconciler(self._admin)
        self._demotions = Demotions(cluster.id, marked)
        self._bootstraps = Bootstraps(cluster.id, self.access, stalls)
        self._unreachable: str | None = None
        # Guarded by the lock:
        self._kafka_cluster_uuid = ""
        self._registered: dict[int, Registration] = {}
        self._partitions: Mapping[int, Partition] = {}
        self._homes: dict[int, int] = {}
        self._answers = Answers(cluster.id, stalls)
        self._progress = Progress()
        self._throttles = Throttles()
        self._ledgers: dict[Key, LegLedger] = {}
        self._warming: dict[int, _Warmth] = {}
        self._timetable = Timetable(clock)
        self._probe_sequence: dict[Key, int] = {}
        self._expected: dict[int, tuple[int, ...]] = {}
        self._record_sequence: dict[tuple[int, Leg, int], int] = {}
        self._left_out = 0
        self._ticks = 0
        self._pulses = 0
        self._next_pulse_ns = 0

    def is_outdated(self) -> bool:
        """Whether a secret or a certificate has been replaced since it started; one that is away stays."""
        stamps = self.access.stamps()
        return stamps != self._stamps and None not in stamps

    def configure(self, cluster: Cluster) -> None:
        """The same cluster, described otherwise."""
        self._cluster = cluster

    # Life --------------------------------------------------------------------

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets or certificates cannot be read."""
        self._stamps = self.access.stamps()
        self._tls = tls_context(self.access)
        ensure_usable(self.access)
        self._spawn("register", self._register)

    def _open(self) -> None:
        """Only a cluster that has let us in gets clients, which knock again and again where they are not.

        Raises KafkaUnavailableError.
        """
        for producer in self._producers.values():
            producer.start()
        self._reader.start()
        self._admin.start()
        self._opened = True
        loops = {
            "observe": self._observe,
            "schedule": self._schedule,
            "consume": self._consume,
            "bootstrap": lambda: self._bootstraps.until(self._stopping, lambda: bool(self._partitions)),
        }
        for name, loop in loops.items():
            self._spawn(name, loop)

    def _spawn(self, name: str, loop: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._until_stopped, args=(loop,), name=f"{self._cluster.id}-{name}")
        self._threads.append(thread)
        thread.start()

    def _until_stopped(self, loop: Callable[[], None]) -> None:
        """A loop that ends by itself has a bug; the agent must not go on half-blind."""
        try:
            loop()
        except Exception:
            _log.exception("%s: %s broke", self._cluster.id, threading.current_thread().name)
            self._broken()

    def stop(self) -> Report:
        """Stop probing and close every minute with what is decided of it."""
        self._stopping.set()
        # The first of them makes the others.
        for thread in self._threads:
            thread.join()
        with self._lock:
            now_ns = uptime_ns()
            records = tuple(
                self._close(key, minute, now_ns)
                for key, ledger in self._ledgers.items()
                for minute in ledger.open_minutes()
            )
            report = self._report(records)
        if self._opened:
            for producer in self._producers.values():
                producer.stop()
            self._reader.stop()
        return report

    # Observe -----------------------------------------------------------------

    def _register(self) -> None:
        while not self._stopping.is_set():
            try:
                registry = registered_brokers(self.access)
                if not self._opened:
                    self._open()
            except KafkaUnavailableError as error:
                if error.reason != self._unreachable:
                    _log.warning("%s: %s", self._cluster.id, error)
                self._unreachable = error.reason
                is_final = isinstance(error, KafkaTurnedAwayError)
                self._stopping.wait(_REGISTER_EVERY_S if is_final else _REGISTER_AGAIN_S)
                continue
            self._unreachable = None
            with self._lock:
                self._kafka_cluster_uuid = registry.kafka_cluster_uuid
                self._registered = {
                    b: r for b, r in registry.brokers.items() if b not in self._cluster.retired
                }
            self._stopping.wait(_REGISTER_EVERY_S)

    def _observe(self) -> None:
        while not self._stopping.wait(_OBSERVE_EVERY_S):
            try:
                self._look_and_mend()
            except KafkaUnavailableError as error:
                _log.info("%s: %s", self._cluster.id, error)

    def _look_and_mend(self) -> None:
        view = self._admin.topic(TOPIC)
        topic = (
            None
            if view is None
            else {n: Partition(p.leader, p.replicas, p.in_sync) for n, p in view.partitions.items()}
        )
        if topic:
            self._demotions.look(self._homeless(topic), uptime_ns())
        now_ns = uptime_ns()
        with self._lock:
            demoted = self._demoted()
            homes = [Home(b, one.rack, b in demoted) for b, one in self._registered.items()]
            live = frozenset(b for b in self._registered if self._answers.is_answering(b, now_ns))
            fresh = self._adopt(topic or {}, demoted, now_ns)
            cold = {broker_id: self._homes[broker_id] for broker_id in self._warming}
        if fresh:
            self._reader.add(fresh)
        for broker_id, partition in cold.items():
            self._warm_up(broker_id, partition)
        self._reconciler.mend(self._cluster, homes, live, topic, now_ns)

    def _demoted(self) -> frozenset[int]:
        return self._demotions.marked | frozenset(self._cluster.demoted)

    def _homeless(self, topic: Mapping[int, Partition]) -> Set[int]:
        with self._lock:
            return self._registered.keys() - home_partitions(topic, self._demoted()).keys()

    def _adopt(self, topic: Mapping[int, Partition], demoted: frozenset[int], now_ns: int) -> list[int]:
        """Take the topic's state over; returns the partitions that nobody reads yet."""
        fresh = [number for number in topic if number not in self._partitions]
        self._partitions = {**self._partitions, **topic}
        homes = home_partitions(self._partitions, demoted)
        self._homes = {b: p for b, p in homes.items() if b in self._registered}
        cold = [b for b in self._homes if (b, Leg.CLIENT) not in self._ledgers]
        # Who loses its home while it warms up begins anew with the next one.
        self._warming = {b: self._warming.get(b, _Warmth(now_ns)) for b in cold}
        for broker_id in [b for b, warmth in self._warming.items() if warmth.over(now_ns)]:
            del self._warming[broker_id]
            self._begin(broker_id, now_ns)
        return fresh

    def _warm_up(self, broker_id: int, partition: int) -> None:
        payload = pack(self._probe_id, ProbeName(broker_id, None, 0))
        for leg, producer in self._producers.items():
            producer.send(partition, payload, partial(self._warmed, broker_id, leg))

    def _warmed(self, broker_id: int, leg: Leg, _: int, failure: str | None) -> None:
        with self._lock:
            if failure is None and broker_id in self._warming:
                self._warming[broker_id].legs.add(leg)

    async def ask(self, broker_id: int) -> None:
        """One cold ApiVersions try on one broker."""
        with self._lock:
            broker = self._registered.get(broker_id)
        if broker is None:
            return
        answer = await cold_answer(broker.host, broker.port, _ANSWER_TIMEOUT_S, self._tls)
        with self._lock:
            self._answers.note(broker, answer)

    def exporters(self) -> dict[int, str]:
        """Where its brokers tell of themselves, of those of which somebody has said it."""
        with self._lock:
            urls = {b: self._cluster.exporter(b, one.host) for b, one in self._registered.items()}
        return {broker_id: url for broker_id, url in urls.items() if url}

    def tells(self, broker_id: int, counters: Counters) -> None:
        """What its exporter says now."""
        with self._lock:
            self._progress.note(broker_id, uptime_ns(), counters)

    def registered(self) -> tuple[int, ...]:
        """The brokers' ids, fenced ones included."""
        with self._lock:
            return tuple(sorted(self._registered))

    # Send and receive --------------------------------------------------------

    def _begin(self, broker_id: int, now_ns: int) -> None:
        position = sorted(self._registered).index(broker_id)
        for leg in Leg:
            self._ledgers[broker_id, leg] = LegLedger(leg, broker_id, self._stalls)
            self._probe_sequence[broker_id, leg] = 0
            phase = phase_ns(position, len(self._registered), leg)
            self._timetable.add(broker_id, leg, phase, now_ns)
        _log.info("%s: probing broker %d", self._cluster.id, broker_id)

    def _schedule(self) -> None:
        while not self._stopping.is_set():
            with self._lock:
                next_ns = self._timetable.next_ns
            wait_ns = _SECOND_NS // 5 if next_ns is None else next_ns - uptime_ns()
            if wait_ns > 0:
                # Never longer than that, so that neither the end nor a new broker's first slot is slept over.
                # A thousand times a second: waiting for the event instead takes four times the processor.
                time.sleep(min(wait_ns, _SECOND_NS // 5) / _SECOND_NS)
            else:
                self._send_due()

    def _send_due(self) -> None:
        with self._lock:
            now_ns = uptime_ns()
            slot = self._timetable.take(now_ns)
            # A broker that is unregistered keeps its slots: it may come back.
            if slot is None or slot.broker_id not in self._homes:
                return
            due_ns, broker_id, leg = slot.due_ns, slot.broker_id, slot.leg
            key = (broker_id, leg)
            minute = self._clock.index(due_ns)
            self._expected.setdefault(minute, tuple(sorted(self._registered)))
            ledger = self._ledgers[key]
            ledger.open_minute(minute)
            if (*key, minute) not in self._record_sequence:
                self._record_sequence[*key, minute] = next(self._sequences)
            where = self._standing(broker_id, now_ns) if leg is Leg.LEADER else Standing.LEADS
            if where is Standing.AWAY:
                return
            sequence = self._probe_sequence[key]
            self._probe_sequence[key] = sequence + 1
            if where is Standing.OUT:
                ledger.failed_unsent(sequence, due_ns, now_ns, minute)
                return
            ledger.sent(sequence, due_ns, now_ns, minute)
            partition = self._homes[broker_id]
        payload = pack(self._probe_id, ProbeName(broker_id, leg, sequence))
        self._producers[leg].send(partition, payload, partial(self._delivered, key, sequence))

    def _delivered(self, key: Key, sequence: int, at_ns: int, failure: str | None) -> None:
        with self._lock:
            if failure:
                throttled = self._throttles.explains(key[0], at_ns)
                failure = failure_code(failure, self._answers.silence(key[0]), self._unreachable, throttled)
            self._ledgers[key].delivered(sequence, at_ns, failure)

    def _throttled(self, broker_id: int, seconds: float) -> None:
        with self._lock:
            self._throttles.note(broker_id, uptime_ns(), seconds)

    def _consume(self) -> None:
        while not self._stopping.is_set():
            record = self._reader.poll(0.2)
            at_ns = uptime_ns()
            name = record and unpack(self._probe_id, record.value)
            if not name:
                continue
            with self._lock:
                if name.leg is Leg.CLIENT and (name.broker_id, name.leg) in self._ledgers:
                    self._ledgers[name.broker_id, name.leg].received(name.sequence, at_ns)
                elif name.leg is None and name.broker_id in self._warming:
                    self._warming[name.broker_id].received = True

    def _routed(self, at_ns: int, routes: Mapping[int, Route]) -> None:
        """Where the leader leg's producer sends: called every second from its own thread."""
        with self._lock:
            for (broker_id, leg), ledger in self._ledgers.items():
                route = routes.get(self._homes.get(broker_id, -1))
                if route is None:
                    continue
                leads = leg is Leg.CLIENT or route.leader == broker_id
                ledger.routed(at_ns, route.leader, self._judge(broker_id, leads, at_ns), route.epoch)

    def _standing(self, broker_id: int, now_ns: int) -> Standing:
        return self._judge(broker_id, self._ledgers[broker_id, Leg.LEADER].leads, now_ns)

    def _judge(self, broker_id: int, leads: bool, now_ns: int) -> Standing:
        return standing(leads, self._in_sync(broker_id), self._answers.is_answering(broker_id, now_ns))

    def _in_sync(self, broker_id: int) -> bool:
        partition = self._partitions.get(self._homes.get(broker_id, -1))
        return partition is not None and broker_id in partition.in_sync

    # Report ------------------------------------------------------------------

    def tick(self) -> Report:
        """What is to be handed on, four times a second."""
        now_ns = uptime_ns()
        with self._lock:
            keys = tuple(self._ledgers)
        closed = self._closed_minutes(keys, now_ns)
        still_open = self._open_minutes(keys, now_ns)
        pulse = self._pulse(now_ns) if self._is_time_for_a_pulse(now_ns) else None
        with self._lock:
            return self._report(closed, still_open, pulse)

    def _in_turn(self, all_of_them: Iterable[T]) -> Iterator[T]:
        """Each under the lock, which is free in between."""
        for number, one in enumerate(all_of_them, 1):
            with self._lock:
                yield one
            if number % _AT_A_TIME == 0:
                time.sleep(_PAUSE_S)

    def _report(
        self,
        closed: tuple[ProbeMinute, ...],
        still_open: tuple[ProbeMinute, ...] = (),
        pulse: ProbePulse | None = None,
    ) -> Report:
        """With what was counted since the last one."""
        report = Report(
            cluster_id=self._cluster.id,
            closed=closed,
            still_open=still_open,
            pulse=pulse,
            left_out=self._left_out,
            pending=self._reconciler.pending,
            outcomes=self._answers.take_outcomes(),
            certificate_ends=self._answers.certificate_ends(self._registered),
            unreachable=self._unreachable,
            throttled_s=self._throttles.take(),
        )
        self._left_out = 0
        return report

    def _closed_minutes(self, keys: Iterable[Key], now_ns: int) -> tuple[ProbeMinute, ...]:
        # Until a probe would be too late to be sent, its minute may still get one.
        current = self._clock.index(now_ns - TOO_LATE_NS)
        records: list[ProbeMinute] = []
        for key in self._in_turn(keys):
            ledger = self._ledgers[key]
            ledger.tick(now_ns)
            if len(records) < _MOST_CLOSED:
                records += [self._close(key, minute, now_ns) for minute in ledger.closable(current)]
        with self._lock:
            open_minutes = {m for ledger in self._ledgers.values() for m in ledger.open_minutes()}
            self._expected = {
                m: ids for m, ids in self._expected.items() if m in open_minutes or m >= current
            }
        return tuple(records)

    def _open_minutes(self, keys: Iterable[Key], now_ns: int) -> tuple[ProbeMinute, ...]:
        self._ticks += 1
        turn = [key for number, key in enumerate(keys, self._ticks) if number % _TICKS_A_ROUND == 0]
        return tuple(
            self._record(
                key, minute, self._ledgers[key].tally(minute), self._record_sequence[*key, minute], now_ns
            )
            for key in self._in_turn(turn)
            for minute in self._ledgers[key].open_minutes()
        )

    def _close(self, key: Key, minute: int, now_ns: int) -> ProbeMinute:
        tally = self._ledgers[key].take(minute)
        self._left_out += tally.left_out
        return self._record(key, minute, tally, self._record_sequence.pop((*key, minute)), now_ns)

    def _record(self, key: Key, minute: int, tally: MinuteTally, sequence: int, now_ns: int) -> ProbeMinute:
        broker_id, leg = key
        broker = self._registered.get(broker_id)
        return probe_minute(
            self._who,
            Subject(
                self._cluster.id, self._kafka_cluster_uuid, broker_id, broker.rack if broker else None, leg
            ),
            self._clock.minute(minute),
            self._expected[minute],
            tally,
            sequence,
            self._clock.wall(now_ns),
        )

    def _is_time_for_a_pulse(self, now_ns: int) -> bool:
        stalled_ns = self._stalls.within_ns(now_ns - _PULSE_EVERY_NS, now_ns)
        return now_ns >= self._next_pulse_ns and stalled_ns < _LONG_STALL_NS

    def _pulse(self, now_ns: int) -> ProbePulse:
        self._next_pulse_ns = max(self._next_pulse_ns + _PULSE_EVERY_NS, now_ns)
        self._pulses += 1
        with self._lock:
            brokers = [self._registered[broker_id] for broker_id in sorted(self._registered)]
        cold = self._bootstraps.last
        return ProbePulse(
            agent_id=self._who.agent_id,
            run_id=self._who.run_id,
            vantage=self._who.vantage,
            cluster_id=self._cluster.id,
            sequence=self._pulses,
            emitted_at=self._clock.wall(now_ns),
            window_ms=WINDOW_NS // 1_000_000,
            brokers=tuple(self._broker_pulse(one, now_ns) for one in self._in_turn(brokers)),
            bootstrap_age_ms=(now_ns - cold.ended_ns) // 1_000_000 if cold else None,
            bootstrap_us=(cold.ended_ns - cold.started_ns) // 1000 if cold and not cold.failure else None,
            bootstrap_failure=cold.failure if cold else None,
        )

    def _broker_pulse(self, broker: Registration, now_ns: int) -> BrokerPulse:
        broker_id = broker.broker_id
        answer, silence = self._answers.last(broker_id), self._answers.silence(broker_id)
        leader_leg = self._ledgers.get((broker_id, Leg.LEADER))
        counters = self._progress.counters(broker_id, now_ns)
        return BrokerPulse(
            broker_id=broker_id,
            leads=leader_leg is not None and leader_leg.leads,
            in_sync=self._in_sync(broker_id),
            fenced=broker.fenced,
            answer_age_ms=(now_ns - answer.at_ns) // 1_000_000 if answer else None,
            answer_us=answer.total_us if answer else None,
            legs=tuple(
                self._ledgers[broker_id, leg].pulse(now_ns)
                for leg in Leg
                if (broker_id, leg) in self._ledgers
            ),
            dns_us=answer.dns_us if answer else None,
            connect_us=answer.connect_us if answer else None,
            tls_us=answer.tls_us if answer else None,
            silence=silence.name.lower() if silence else None,
            requests_waiting=counters.waiting if counters else None,
            stalled_ms=self._progress.stalled_ms(broker_id, now_ns),
            offline_dirs=counters.offline_dirs if counters else None,
        )
