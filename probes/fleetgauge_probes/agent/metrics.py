"""The agent's Prometheus metrics. Names and labels are stable: docs/operations/metrics.md lists them."""

from collections import defaultdict
from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from functools import partial
from math import nan

from prometheus_client import CollectorRegistry, Counter, Gauge

from fleetgauge_core.contract import BrokerPulse, ProbeMinute, ProbePulse
from fleetgauge_core.contract.failure_codes import AgentFault
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_probes.agent.latency_histogram import LatencyHistograms
from fleetgauge_probes.agent.spool import SpoolState

_PERCENTILES = {"0.5": 50, "0.99": 99}
_US = 1_000_000
_NS = 1_000_000_000


class AgentMetrics:
    """Updates a registry from the agent's records, pulses and counters, given in chronological order."""

    def __init__(self, registry: CollectorRegistry, spool_max_bytes: int) -> None:
        """Register all metrics; ``spool_max_bytes`` is exported as it is."""
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        leg = ("cluster", "broker", "leg")
        self._latency_histograms = LatencyHistograms(registry)
        self._probes = counter(
            "fleetgauge_probes_total", "Probes of closed minutes, by outcome.", (*leg, "outcome")
        )
        self._latency = gauge(
            "fleetgauge_probe_latency_seconds",
            "Latency of the successful probes of the last closed minute; absent if none succeeded.",
            (*leg, "quantile"),
        )
        self._lag = gauge(
            "fleetgauge_agent_schedule_lag_seconds",
            "How late probes of the last closed minute were sent: the largest p95 of its brokers and legs.",
            ("cluster",),
        )
        self._excluded = counter(
            "fleetgauge_agent_probes_left_out_total",
            "Probes of closed minutes excluded as they measured the agent: late, paused, or its own fault.",
            ("cluster",),
        )
        self._pending_actions = gauge(
            "fleetgauge_agent_topic_changes_pending",
            "Due changes to the probe topic not made: rejected by the cluster, or the topic is unmanaged.",
            ("cluster",),
        )
        self._connections = counter(
            "fleetgauge_agent_answers_total",
            "Cold connections to a broker, one a second, by outcome: answered, or the failure.",
            ("cluster", "broker", "outcome"),
        )
        self._connection_steps = gauge(
            "fleetgauge_agent_answer_seconds",
            "Duration of each step of the last cold connection: dns, connect, tls, and the total.",
            ("cluster", "broker", "step"),
        )
        self._bootstrap_duration = gauge(
            "fleetgauge_agent_bootstrap_seconds",
            "Duration of the last cold bootstrap, one a minute; absent while it fails.",
            ("cluster",),
        )
        self._throttled = counter(
            "fleetgauge_agent_throttled_seconds_total",
            "Time for which a broker throttled probes because a client quota was exceeded.",
            ("cluster", "broker"),
        )
        self._certificate_expiry = gauge(
            "fleetgauge_agent_certificate_expiry_timestamp_seconds",
            "When a broker's TLS certificate expires; absent without TLS.",
            ("cluster", "broker"),
        )
        self._unreachable = gauge(
            "fleetgauge_agent_cluster_unreachable",
            "1 while a cluster does not list its brokers, by reason.",
            ("cluster", "reason"),
        )
        self._agent_faults = gauge(
            "fleetgauge_agent_own_faults",
            "1 while brokers of a cluster are not measured for a reason of the agent's own.",
            ("cluster", "reason"),
        )
        self._paused = counter(
            "fleetgauge_agent_stalled_seconds_total",
            "Time in which this process did not run: stopped, suspended, starved of CPU, garbage collection.",
        )
        self._clock_ahead = gauge(
            "fleetgauge_agent_clock_ahead_seconds",
            "How far the wall clock is ahead of the clock that assigns minutes; shows a clock step.",
        )
        self._pulse_timestamp = gauge(
            "fleetgauge_agent_pulse_timestamp_seconds", "When the last pulse was emitted.", ("cluster",)
        )
        self._pulse_outcomes = counter(
            "fleetgauge_agent_pulses_total",
            "Pulses delivered to the telemetry cluster, and pulses that failed: the log has the reason.",
            ("outcome",),
        )
        for outcome in ("delivered", "failed"):
            self._pulse_outcomes.labels(outcome)
        self._brokers = gauge(
            "fleetgauge_brokers_expected", "Registered brokers, fenced ones included.", ("cluster",)
        )
        self._record_outcomes = counter(
            "fleetgauge_agent_records_total",
            "Probe minutes delivered to the telemetry cluster, and probe minutes dropped.",
            ("outcome",),
        )
        for outcome in ("delivered", "dropped"):
            self._record_outcomes.labels(outcome)
        self._spool_records = gauge(
            "fleetgauge_agent_spool_records", "Probe minutes in the spool, waiting for the telemetry cluster."
        )
        self._spool_bytes = gauge("fleetgauge_agent_spool_bytes", "Size of the probe minutes in the spool.")
        self._spool_oldest = gauge(
            "fleetgauge_agent_spool_oldest_timestamp_seconds",
            "Start of the oldest probe minute in the spool; NaN if the spool is empty.",
        )
        gauge(
            "fleetgauge_agent_spool_max_bytes",
            "Size of the spool beyond which the oldest records are dropped.",
        ).set(spool_max_bytes)
        # Removed with a broker, in addition to the metrics of its probes.
        self._broker_metrics = (
            self._connections,
            self._connection_steps,
            self._certificate_expiry,
            self._throttled,
        )
        self._counted_pause_ns = 0
        self._counted_pulses = {"delivered": 0, "failed": 0}
        self._max_lag: dict[str, tuple[datetime, int]] = {}
        self._broker_ids: dict[str, set[int]] = defaultdict(set)

    def record_minute(self, record: ProbeMinute) -> None:
        """Record a closed minute of one broker and leg."""
        leg = (record.cluster_id, record.broker_id, record.leg)
        self._latency_histograms.observe_minute(record)
        self._broker_ids[record.cluster_id].add(record.broker_id)
        succeeded = len(record.success_us)
        self._probes.labels(*leg, "succeeded").inc(succeeded)
        self._probes.labels(*leg, "failed").inc(record.attempted - succeeded)
        for name, percent in _PERCENTILES.items():
            latency_us = quantile(percent, record.success_us)
            if latency_us is None:
                self._latency.remove(*leg, name)
            else:
                self._latency.labels(*leg, name).set(latency_us / _US)
        # The tuple orders by minute first: a newer minute replaces the maximum, an older one is ignored.
        lag = (record.minute, record.schedule_lag_p95_us)
        minute, lag_us = max(lag, self._max_lag.get(record.cluster_id, lag))
        self._max_lag[record.cluster_id] = minute, lag_us
        self._lag.labels(record.cluster_id).set(lag_us / _US)

    def record_pulse_deliveries(self, delivered: int, failed: int) -> None:
        """Record how many pulses were delivered and how many failed since the start."""
        for outcome, total in (("delivered", delivered), ("failed", failed)):
            self._pulse_outcomes.labels(outcome).inc(total - self._counted_pulses[outcome])
            self._counted_pulses[outcome] = total

    def record_pulse(self, pulse: ProbePulse) -> None:
        """Record an emitted pulse; it has no brokers before the cluster first listed them."""
        self._pulse_timestamp.labels(pulse.cluster_id).set(pulse.emitted_at.timestamp())
        if pulse.brokers:
            self._brokers.labels(pulse.cluster_id).set(len(pulse.brokers))
        for broker in pulse.brokers:
            self._record_connection_steps(pulse.cluster_id, broker)
        if pulse.bootstrap_us is None:
            self._bootstrap_duration.remove_by_labels({"cluster": pulse.cluster_id})
        else:
            self._bootstrap_duration.labels(pulse.cluster_id).set(pulse.bootstrap_us / _US)
        # An unregistered broker has no further minute that would replace its last values.
        registered = {broker.broker_id for broker in pulse.brokers}
        for broker_id in self._broker_ids[pulse.cluster_id] - registered:
            self._broker_ids[pulse.cluster_id].discard(broker_id)
            for metric in (self._latency, *self._broker_metrics):
                metric.remove_by_labels({"cluster": pulse.cluster_id, "broker": str(broker_id)})

    def _record_connection_steps(self, cluster_id: str, broker: BrokerPulse) -> None:
        durations_us = {
            "dns": broker.dns_us,
            "connect": broker.connect_us,
            "tls": broker.tls_us,
            "total": broker.answer_us,
        }
        for step, duration_us in durations_us.items():
            if duration_us is not None:
                self._broker_ids[cluster_id].add(broker.broker_id)
                self._connection_steps.labels(cluster_id, broker.broker_id, step).set(duration_us / _US)

    def record_throttling(self, cluster_id: str, throttled_s: Mapping[int, float]) -> None:
        """Add the seconds for which each broker throttled probes."""
        for broker_id, seconds in throttled_s.items():
            self._broker_ids[cluster_id].add(broker_id)
            self._throttled.labels(cluster_id, broker_id).inc(seconds)

    def record_cluster_state(
        self,
        cluster_id: str,
        excluded_probes: int,
        pending_topic_actions: int,
        unreachable_reason: str | None,
    ) -> None:
        """Add excluded probes, and set the pending topic changes and why the cluster lists no brokers."""
        self._unreachable.remove_by_labels({"cluster": cluster_id})
        if unreachable_reason:
            self._unreachable.labels(cluster_id, unreachable_reason).set(1)
        self._excluded.labels(cluster_id).inc(excluded_probes)
        self._pending_actions.labels(cluster_id).set(pending_topic_actions)

    def record_agent_faults(self, cluster_id: str, faults: Set[AgentFault]) -> None:
        """Set the agent's own faults for which brokers of a cluster are not measured."""
        self._agent_faults.remove_by_labels({"cluster": cluster_id})
        for fault in faults:
            self._agent_faults.labels(cluster_id, fault.value).set(1)

    def record_connections(
        self,
        cluster_id: str,
        outcomes: Mapping[tuple[int, str], int],
        certificate_expiries: Mapping[int, datetime],
    ) -> None:
        """Add cold-connection attempts by broker and outcome, and set when certificates expire."""
        for (broker_id, outcome), attempts in outcomes.items():
            self._broker_ids[cluster_id].add(broker_id)
            self._connections.labels(cluster_id, broker_id, outcome).inc(attempts)
        for broker_id, expiry in certificate_expiries.items():
            self._certificate_expiry.labels(cluster_id, broker_id).set(expiry.timestamp())

    def remove_cluster(self, cluster_id: str) -> None:
        """Remove all series of a cluster that is no longer probed."""
        self._broker_ids.pop(cluster_id, None)
        self._max_lag.pop(cluster_id, None)
        self._latency_histograms.remove_cluster(cluster_id)
        for metric in (
            self._probes,
            self._latency,
            self._lag,
            self._excluded,
            self._pending_actions,
            self._pulse_timestamp,
            self._brokers,
            self._unreachable,
            self._agent_faults,
            self._bootstrap_duration,
            *self._broker_metrics,
        ):
            metric.remove_by_labels({"cluster": cluster_id})

    def record_process_clock(self, total_paused_ns: int, clock_ahead: timedelta) -> None:
        """Record how long the process has been paused since its start, and the wall clock's lead."""
        self._paused.inc((total_paused_ns - self._counted_pause_ns) / _NS)
        self._counted_pause_ns = total_paused_ns
        self._clock_ahead.set(clock_ahead.total_seconds())

    def count_records(self, outcome: str, records: int) -> None:
        """Add probe minutes that were ``delivered`` or ``dropped``."""
        self._record_outcomes.labels(outcome).inc(records)

    def record_spool_state(self, state: SpoolState) -> None:
        """Set how much the spool holds now."""
        self._spool_records.set(state.records)
        self._spool_bytes.set(state.value_bytes)
        self._spool_oldest.set(state.oldest.timestamp() if state.oldest else nan)
