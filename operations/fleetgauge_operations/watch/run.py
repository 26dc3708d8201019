"""The watch's loop: one pulse at a time through the fold, findings to the topic and the sinks."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifiers import Sink
from fleetgauge_pipelines.detection import Finding, FleetState, expect, judge, pass_time, remember
from fleetgauge_probes.contract import ContractError, HealthEvent, ProbePulse
from fleetgauge_probes.fleet import Telemetry
from fleetgauge_probes.kafka import RecordProducer, TopicReader, ensure_topics
from fleetgauge_probes.stopping import Stopping
from fleetgauge_probes.vitals import Vitals

T = TypeVar("T", ProbePulse, HealthEvent)

_log = logging.getLogger("fleetgauge.watch")

_READ_BACK_TIMEOUT_S = 10
#: A pulse this old tells of the past; a watch that starts must not page for it.
STALE_AFTER = timedelta(seconds=30)
#: Who has fallen silent is looked for, in all clusters.
LOOK_EVERY = timedelta(seconds=1)


def run_watch(
    telemetry: Telemetry,
    clusters: Sequence[str],
    clock: Callable[[], datetime],
    show: Callable[[Finding], None],
    sinks: Sequence[Sink],
    vitals: Vitals,
    metrics: WatchMetrics,
    stopping: Stopping,
) -> FleetState:
    """Watch until ``stopping`` is set; returns what was known at the end. ``clusters`` are to be heard of.

    Raises KafkaUnavailableError when the telemetry cluster cannot be reached at the start.
    """
    ensure_topics(telemetry)
    topics = telemetry.topics
    reader = TopicReader(telemetry.access, topics.probe_pulse.name, "fleetgauge-watch")
    reader.start()
    reader.add(reader.partitions())
    events = RecordProducer(telemetry.access, "fleetgauge-watch")
    events.start()
    state = expect(remember(_past_events(telemetry)), clusters, clock())
    metrics.remembered(state)
    for sink in sinks:
        sink.remind(state.open_findings())
    look_at = clock()
    vitals.ready()
    try:
        while not stopping.is_set():
            vitals.beat()
            record = reader.poll(0.5)
            pulse = _read(ProbePulse, record.value) if record else None
            now = clock()
            findings: tuple[Finding, ...] = ()
            if now >= look_at:
                state, findings = pass_time(state, now)
                look_at = now + LOOK_EVERY
            if pulse:
                metrics.heard(pulse)
            if pulse and now - pulse.emitted_at <= STALE_AFTER:
                state, of_pulse = judge(state, pulse)
                findings += of_pulse
            for finding in findings:
                metrics.found(finding)
                _tell(finding, events, topics.health_events.name, show, sinks)
    finally:
        events.stop()
        reader.stop()
    return state


def _tell(
    finding: Finding,
    events: RecordProducer,
    topic: str,
    show: Callable[[Finding], None],
    sinks: Sequence[Sink],
) -> None:
    event: HealthEvent = finding.event
    events.send(topic, event.cluster_id, event.encode())
    show(finding)
    if finding.names or finding.clears:
        for sink in sinks:
            sink.tell(finding)


def _past_events(telemetry: Telemetry) -> list[HealthEvent]:
    """What earlier watches said, so that a restart neither names a broker twice nor forgets one."""
    reader = TopicReader(telemetry.access, telemetry.topics.health_events.name, "fleetgauge-watch")
    reader.start()
    try:
        partitions = reader.partitions()
        ends = reader.ends(partitions)
        reader.add(partitions, from_beginning=True)
        records = [record.value for record in reader.until(ends, _READ_BACK_TIMEOUT_S)]
    finally:
        reader.stop()
    return [event for value in records if (event := _read(HealthEvent, value))]


def _read(record: type[T], value: bytes) -> T | None:
    """One wire record, or None with a line in the log: what cannot be read must not stop the watch."""
    try:
        return record.decode(value)
    except ContractError as error:
        _log.warning("a %s was passed over: %s", record.__name__, error)
        return None
