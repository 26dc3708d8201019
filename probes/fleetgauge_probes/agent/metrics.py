"""What the agent's /metrics tells. Names and labels are a promise: docs/operations.md lists them."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from math import nan

from prometheus_client import CollectorRegistry, Counter, Gauge

from fleetgauge_core.contract import BrokerPulse, ProbeMinute, ProbePulse
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_probes.agent.latency_histogram import Durations
from fleetgauge_probes.agent.spool import SpoolState

_PERCENTILES = {"0.5": 50, "0.99": 99}
_US = 1_000_000
_NS = 1_000_000_000


class AgentMetrics:
    """Takes the records that the agent sends, in their order, and keeps the registry up to them."""

    def __init__(self, registry: CollectorRegistry, spool_max_bytes: int) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        leg = ("cluster", "broker", "leg")
        self._durations = Durations(registry)
        self._probes = counter("fleetgauge_probes_total", "Probes of decided minutes.", (*leg, "outcome"))
        self._latency = gauge(
            "fleetgauge_probe_latency_seconds",
            "Of the successes of the last decided minute; absent without one.",
            (*leg, "quantile"),
        )
        self._lag = gauge(
            "fleetgauge_agent_schedule_lag_seconds",
            "How late probes of the last decided minute were sent: the largest p95 of its brokers and legs.",
            ("cluster",),
        )
        self._left_out = counter(
            "fleetgauge_agent_probes_left_out_total",
            "Probes of decided minutes that told of this process: sent late, or stalled under way.",
            ("cluster",),
        )
        self._pending = gauge(
            "fleetgauge_agent_topic_changes_pending",
            "Changes of the probe topic that are due and not made: refused, or the topic is not managed.",
            ("cluster",),
        )
        self._answers = counter(
            "fleetgauge_agent_answers_total",
            "Cold questions to a broker, one a second, by what they met: answered, or what stood in the way.",
            ("cluster", "broker", "outcome"),
        )
        self._answer_took = gauge(
            "fleetgauge_agent_answer_seconds",
            "How long each step of the last cold answer took: dns, connect, tls, and total with the answer.",
            ("cluster", "broker", "step"),
        )
        self._bootstrap_took = gauge(
            "fleetgauge_agent_bootstrap_seconds",
            "How long the last cold bootstrap took, one a minute; absent while it fails.",
            ("cluster",),
        )
        self._throttled = counter(
            "fleetgauge_agent_throttled_seconds_total",
            "How long a broker held probes back for a quota.",
            ("cluster", "broker"),
        )
        self._certificate_ends = gauge(
            "fleetgauge_agent_certificate_expiry_timestamp_seconds",
            "Until when a broker's certificate is good; absent without TLS.",
            ("cluster", "broker"),
        )
        self._unreachable = gauge(
            "fleetgauge_agent_cluster_unreachable",
            "1 while a cluster does not say who its brokers are, by what stands in the way.",
            ("cluster", "reason"),
        )
        self._stalled = counter(
            "fleetgauge_agent_stalled_seconds_total",
            "How long this process did not run: stopped, suspended, starved, collecting.",
        )
        self._clock = gauge(
            "fleetgauge_agent_clock_ahead_seconds",
            "How far the wall clock is ahead of the time by which minutes are named; a step shows here.",
        )
        self._pulse = gauge(
            "fleetgauge_agent_pulse_timestamp_seconds", "When the last pulse was made.", ("cluster",)
        )
        self._brokers = gauge(
            "fleetgauge_brokers_expected", "Registered brokers, fenced ones included.", ("cluster",)
        )
        self._fates = counter(
            "fleetgauge_agent_records_total",
            "Probe minutes that the telemetry cluster acknowledged, and those that had to go.",
            ("outcome",),
        )
        for outcome in ("delivered", "dropped"):
            self._fates.labels(outcome)
        self._spool_records = gauge(
            "fleetgauge_agent_spool_records", "Probe minutes that wait for the telemetry cluster."
        )
        self._spool_bytes = gauge("fleetgauge_agent_spool_bytes", "The bytes of what waits.")
        self._spool_oldest = gauge(
            "fleetgauge_agent_spool_oldest_timestamp_seconds",
            "The minute that waits longest; NaN where none waits.",
        )
        gauge("fleetgauge_agent_spool_max_bytes", "Beyond this the oldest records are dropped.").set(
            spool_max_bytes
        )
        #: What goes when a broker does, beside what is known of its probes.
        self._of_brokers = (self._answers, self._answer_took, self._certificate_ends, self._throttled)
        self._stalled_ns = 0
        self._lag_of: dict[str, tuple[datetime, int]] = {}
        self._known: dict[str, set[int]] = defaultdict(set)

    def minute(self, record: ProbeMinute) -> None:
        """A minute of one broker and leg is decided."""
        leg = (record.cluster_id, record.broker_id, record.leg)
        self._durations.minute(record)
        self._known[record.cluster_id].add(record.broker_id)
        succeeded = len(record.success_us)
        self._probes.labels(*leg, "succeeded").inc(succeeded)
        self._probes.labels(*leg, "failed").inc(record.attempted - succeeded)
        for name, a in _PERCENTILES.items():
            latency_us = quantile(a, record.success_us)
            if latency_us is None:
                self._latency.remove(*leg, name)
            else:
                self._latency.labels(*leg, name).set(latency_us / _US)
        # By minute, then lag: a newer minute counts afresh, an older one no more.
        lag = (record.minute, record.schedule_lag_p95_us)
        self._lag_of[record.cluster_id] = max(lag, self._lag_of.get(record.cluster_id, lag))
        self._lag.labels(record.cluster_id).set(self._lag_of[record.cluster_id][1] / _US)

    def pulse(self, pulse: ProbePulse) -> None:
        """A pulse is sent. One without brokers is from before the cluster first answered."""
        self._pulse.labels(pulse.cluster_id).set(pulse.emitted_at.timestamp())
        if pulse.brokers:
            self._brokers.labels(pulse.cluster_id).set(len(pulse.brokers))
        for broker in pulse.brokers:
            self._steps(pulse.cluster_id, broker)
        if pulse.bootstrap_us is None:
            self._bootstrap_took.remove_by_labels({"cluster": pulse.cluster_id})
        else:
            self._bootstrap_took.labels(pulse.cluster_id).set(pulse.bootstrap_us / _US)
        # Who is registered no more has no last minute that would ever be followed by another.
        for gone in self._known[pulse.cluster_id] - {broker.broker_id for broker in pulse.brokers}:
            self._known[pulse.cluster_id].discard(gone)
            for metric in (self._latency, *self._of_brokers):
                metric.remove_by_labels({"cluster": pulse.cluster_id, "broker": str(gone)})

    def _steps(self, cluster_id: str, broker: BrokerPulse) -> None:
        took_us = {
            "dns": broker.dns_us,
            "connect": broker.connect_us,
            "tls": broker.tls_us,
            "total": broker.answer_us,
        }
        for step, one in took_us.items():
            if one is not None:
                self._known[cluster_id].add(broker.broker_id)
                self._answer_took.labels(cluster_id, broker.broker_id, step).set(one / _US)

    def throttled(self, cluster_id: str, seconds: Mapping[int, float]) -> None:
        """For so long its brokers held probes back for a quota."""
        for broker_id, one in seconds.items():
            self._known[cluster_id].add(broker_id)
            self._throttled.labels(cluster_id, broker_id).inc(one)

    def cluster(self, cluster_id: str, left_out: int, pending: int, unreachable: str | None) -> None:
        """So many more probes told of this process; so many changes of the probe topic are not made.

        ``unreachable`` is why the cluster does not say who its brokers are.
        """
        self._unreachable.remove_by_labels({"cluster": cluster_id})
        if unreachable:
            self._unreachable.labels(cluster_id, unreachable).set(1)
        self._left_out.labels(cluster_id).inc(left_out)
        self._pending.labels(cluster_id).set(pending)

    def answers(
        self, cluster_id: str, outcomes: Mapping[tuple[int, str], int], ends: Mapping[int, datetime]
    ) -> None:
        """What cold questions to its brokers met, and until when their certificates are good."""
        for (broker_id, outcome), times in outcomes.items():
            self._known[cluster_id].add(broker_id)
            self._answers.labels(cluster_id, broker_id, outcome).inc(times)
        for broker_id, end in ends.items():
            self._certificate_ends.labels(cluster_id, broker_id).set(end.timestamp())

    def forget(self, cluster_id: str) -> None:
        """The cluster is measured no more."""
        self._known.pop(cluster_id, None)
        self._lag_of.pop(cluster_id, None)
        self._durations.forget(cluster_id)
        own = (self._probes, self._latency, self._lag, self._left_out, self._pending, self._pulse)
        more = (self._brokers, self._unreachable, self._bootstrap_took, *self._of_brokers)
        for metric in (*own, *more):
            metric.remove_by_labels({"cluster": cluster_id})

    def clock(self, stalled_ns: int, ahead: timedelta) -> None:
        """How long it has not run so far, and how the wall clock stands now."""
        self._stalled.inc((stalled_ns - self._stalled_ns) / _NS)
        self._stalled_ns = stalled_ns
        self._clock.set(ahead.total_seconds())

    def records(self, outcome: str, records: int) -> None:
        """So many probe minutes were ``delivered`` or ``dropped``."""
        self._fates.labels(outcome).inc(records)

    def spool(self, state: SpoolState) -> None:
        """What waits now."""
        self._spool_records.set(state.records)
        self._spool_bytes.set(state.value_bytes)
        self._spool_oldest.set(state.oldest.timestamp() if state.oldest else nan)
