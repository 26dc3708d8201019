"""librdkafka settings that measuring needs; each differs from the default for a reason."""

from typing import Any

CONNECTION: dict[str, Any] = {
    # A dead connection must not hide a broker's return behind a long back-off.
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": 4000,
    "socket.nagle.disable": True,
    # Leadership moves; a probe must follow within a couple of seconds.
    "topic.metadata.refresh.interval.ms": 2000,
    "metadata.max.age.ms": 6000,
    # librdkafka keeps histograms of every broker to push them (KIP-714); nobody asks a prober for those.
    "enable.metrics.push": False,
    # Broken connections are what is being measured, not worth a log line each.
    "log.connection.close": False,
    "log_level": 2,
}

#: A probe that is not acknowledged within 5 s has failed.
PROBE_PRODUCER: dict[str, Any] = {
    "linger.ms": 0,
    "message.timeout.ms": 5000,
    "request.timeout.ms": 3000,
    "statistics.interval.ms": 1000,
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 300,
    "queue.buffering.max.messages": 20000,
}

PROBE_CONSUMER: dict[str, Any] = {
    "group.id": "fleetgauge-probe",  # named, but never joined: partitions are assigned by hand
    "enable.auto.commit": False,
    "auto.offset.reset": "latest",
    "fetch.wait.max.ms": 500,
    "fetch.error.backoff.ms": 100,
    "fetch.queue.backoff.ms": 10,
}

RECORD_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "compression.type": "lz4",
}

#: One that is written twice would look like one that came back through a mirror.
TRACER_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 5000,
    "request.timeout.ms": 3000,
    "queue.buffering.max.messages": 1000,
}

#: What is sent here stays in its spool until it is acknowledged, so librdkafka need never give a message
#: up; one request at a time keeps their order without idempotence and the right that it takes.
SPOOL_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "max.in.flight.requests.per.connection": 1,
    "linger.ms": 5,
    "compression.type": "lz4",
    "message.timeout.ms": 0,
}

#: One member of the group works and the others wait: who joins must take nothing from who works.
SEAT: dict[str, Any] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "heartbeat.interval.ms": 1000,
    "enable.auto.commit": False,
    "auto.offset.reset": "latest",
}
