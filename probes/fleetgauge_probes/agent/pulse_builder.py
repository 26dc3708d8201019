"""Pulses of one cluster: the state of its brokers over the last seconds."""

from fleetgauge_core.contract import BrokerPulse, Leg, ProbePulse
from fleetgauge_core.kafka import BootstrapMeasurement
from fleetgauge_core.metadata import BrokerRegistration
from fleetgauge_probes.agent.cluster_state import BrokerLeg, ClusterState
from fleetgauge_probes.agent.minute import AgentIdentity
from fleetgauge_probes.agent.probe_tracker import WINDOW_NS
from fleetgauge_probes.agent.process_pauses import ProcessPauses
from fleetgauge_probes.agent.schedule import MinuteClock

_SECOND_NS = 1_000_000_000
_INTERVAL_NS = 5 * _SECOND_NS
#: After a longer pause of the process, pulses wait until the brokers had time to show their state again.
_MAX_PAUSED_NS = _SECOND_NS


class PulseBuilder:
    """Builds a pulse of one cluster every five seconds. For use by a single thread."""

    def __init__(
        self, agent: AgentIdentity, state: ClusterState, clock: MinuteClock, pauses: ProcessPauses
    ) -> None:
        """Report as ``agent``."""
        self._agent = agent
        self._state = state
        self._clock = clock
        self._pauses = pauses
        self._sequence = 0
        self._next_ns = 0

    def is_due(self, now_ns: int) -> bool:
        """Return whether the interval has passed and the process was hardly paused in the last 5 s."""
        paused_ns = self._pauses.measure_paused_ns(now_ns - _INTERVAL_NS, now_ns)
        return now_ns >= self._next_ns and paused_ns < _MAX_PAUSED_NS

    def build(self, now_ns: int, bootstrap: BootstrapMeasurement | None) -> ProbePulse:
        """Return the pulse of all registered brokers; ``bootstrap`` is the latest cold bootstrap."""
        self._next_ns = max(self._next_ns + _INTERVAL_NS, now_ns)
        self._sequence += 1
        state = self._state
        with state.lock:
            brokers = [state.registered[broker_id] for broker_id in sorted(state.registered)]
        return ProbePulse(
            agent_id=self._agent.agent_id,
            run_id=self._agent.run_id,
            vantage=self._agent.vantage,
            cluster_id=state.cluster.id,
            sequence=self._sequence,
            emitted_at=self._clock.wall_time(now_ns),
            window_ms=WINDOW_NS // 1_000_000,
            brokers=tuple(self._build_broker(broker, now_ns) for broker in state.iterate_locked(brokers)),
            bootstrap_age_ms=(now_ns - bootstrap.ended_ns) // 1_000_000 if bootstrap else None,
            bootstrap_us=_duration_us(bootstrap) if bootstrap and not bootstrap.failure else None,
            bootstrap_failure=bootstrap.failure if bootstrap else None,
        )

    def _build_broker(self, broker: BrokerRegistration, now_ns: int) -> BrokerPulse:
        """Return one broker's part of the pulse. The lock is held."""
        state = self._state
        broker_id = broker.broker_id
        connection = state.connections.latest_measurement(broker_id)
        failure = state.connections.latest_failure(broker_id)
        leader_tracker = state.trackers.get(BrokerLeg(broker_id, Leg.LEADER))
        counters = state.progress.latest_counters(broker_id, now_ns)
        return BrokerPulse(
            broker_id=broker_id,
            leads=leader_tracker is not None and leader_tracker.leads,
            in_sync=state.is_in_sync(broker_id),
            fenced=broker.fenced,
            answer_age_ms=(now_ns - connection.at_ns) // 1_000_000 if connection else None,
            answer_us=connection.total_us if connection else None,
            legs=tuple(
                state.trackers[BrokerLeg(broker_id, leg)].build_pulse(now_ns, state.login_fault(broker_id))
                for leg in Leg
                if BrokerLeg(broker_id, leg) in state.trackers
            ),
            dns_us=connection.dns_us if connection else None,
            connect_us=connection.connect_us if connection else None,
            tls_us=connection.tls_us if connection else None,
            silence=failure.value if failure else None,
            requests_waiting=counters.queued_requests if counters else None,
            stalled_ms=state.progress.stalled_ms(broker_id, now_ns),
            offline_dirs=counters.offline_log_dirs if counters else None,
            connection_fault=state.connections.latest_fault(broker_id),
        )


def _duration_us(bootstrap: BootstrapMeasurement) -> int:
    return (bootstrap.ended_ns - bootstrap.started_ns) // 1000
