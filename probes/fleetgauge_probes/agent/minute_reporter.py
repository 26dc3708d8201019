"""Records of closed and open minutes of one cluster."""

from collections.abc import Iterable

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_probes.agent.cluster_state import BrokerLeg, ClusterState
from fleetgauge_probes.agent.minute import AgentIdentity, ProbeTarget, build_probe_minute
from fleetgauge_probes.agent.minute_tally import MinuteTally
from fleetgauge_probes.agent.schedule import TOO_LATE_NS, MinuteClock

#: Each round reports the open minutes of one in so many legs, so that no round takes long.
_ROUNDS_TO_COVER_OPEN_MINUTES = 20
#: A round stops closing minutes after about this many: all minutes end at once, so closing them is spread.
_MAX_CLOSED = 50


class MinuteReporter:
    """Builds the records of one cluster's minutes. For use by a single thread."""

    def __init__(self, agent: AgentIdentity, state: ClusterState, clock: MinuteClock) -> None:
        """Report as ``agent``."""
        self._agent = agent
        self._state = state
        self._clock = clock
        self._rounds = 0
        self._excluded_probes = 0

    def close_finished_minutes(self, legs: Iterable[BrokerLeg], now_ns: int) -> tuple[ProbeMinute, ...]:
        """Close the ended minutes of ``legs`` whose probes are all decided, and return their records."""
        state = self._state
        # Until a probe would be too late to be sent, its minute may still get one.
        current = self._clock.minute_index(now_ns - TOO_LATE_NS)
        records: list[ProbeMinute] = []
        for broker_leg in state.iterate_locked(legs):
            tracker = state.trackers[broker_leg]
            state.expire_overdue(broker_leg, now_ns)
            if len(records) < _MAX_CLOSED:
                records += [
                    self._close_minute(broker_leg, minute, now_ns)
                    for minute in tracker.closable_minutes(current)
                ]
        with state.lock:
            open_minutes = {
                minute for tracker in state.trackers.values() for minute in tracker.open_minutes()
            }
            state.expected_brokers = {
                minute: broker_ids
                for minute, broker_ids in state.expected_brokers.items()
                if minute in open_minutes or minute >= current
            }
        return tuple(records)

    def report_open_minutes(self, legs: Iterable[BrokerLeg], now_ns: int) -> tuple[ProbeMinute, ...]:
        """Return interim records of the open minutes of one in 20 of ``legs``, others in each round."""
        state = self._state
        self._rounds += 1
        selected = [
            broker_leg
            for number, broker_leg in enumerate(legs, self._rounds)
            if number % _ROUNDS_TO_COVER_OPEN_MINUTES == 0
        ]
        return tuple(
            self._build_record(
                broker_leg,
                minute,
                state.trackers[broker_leg].tally_minute(minute),
                state.record_sequences[broker_leg, minute],
                now_ns,
            )
            for broker_leg in state.iterate_locked(selected)
            for minute in state.trackers[broker_leg].open_minutes()
        )

    def close_all_minutes(self, now_ns: int) -> tuple[ProbeMinute, ...]:
        """Close every minute with the probes that are decided. The caller holds the state's lock."""
        return tuple(
            self._close_minute(broker_leg, minute, now_ns)
            for broker_leg, tracker in self._state.trackers.items()
            for minute in tracker.open_minutes()
        )

    def drain_excluded_probes(self) -> int:
        """Return the number of excluded probes in minutes closed since the last call, and reset it."""
        excluded, self._excluded_probes = self._excluded_probes, 0
        return excluded

    def _close_minute(self, broker_leg: BrokerLeg, minute: int, now_ns: int) -> ProbeMinute:
        tally = self._state.trackers[broker_leg].close_minute(minute)
        self._excluded_probes += tally.excluded
        sequence = self._state.record_sequences.pop((broker_leg, minute))
        return self._build_record(broker_leg, minute, tally, sequence, now_ns)

    def _build_record(
        self, broker_leg: BrokerLeg, minute: int, tally: MinuteTally, sequence: int, now_ns: int
    ) -> ProbeMinute:
        state = self._state
        broker = state.registered.get(broker_leg.broker_id)
        target = ProbeTarget(
            cluster_id=state.cluster.id,
            kafka_cluster_uuid=state.kafka_cluster_uuid,
            broker_id=broker_leg.broker_id,
            rack=broker.rack if broker else None,
            leg=broker_leg.leg,
        )
        return build_probe_minute(
            self._agent,
            target,
            self._clock.minute_start(minute),
            state.expected_brokers[minute],
            tally,
            sequence,
            self._clock.wall_time(now_ns),
        )
