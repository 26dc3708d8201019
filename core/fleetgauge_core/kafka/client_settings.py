"""Settings of librdkafka's clients; the comments say why each differs from the default."""

from typing import Any

CONNECTION: dict[str, Any] = {
    # A long back-off would delay the detection of a broker's return.
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": 4000,
    "socket.nagle.disable": True,
    # Probes must follow a change of leader within about two seconds.
    "topic.metadata.refresh.interval.ms": 2000,
    "metadata.max.age.ms": 6000,
    # A producer's request for metadata would create a deleted topic with the cluster's defaults.
    "allow.auto.create.topics": False,
    # Client metrics (KIP-714) cost a histogram per broker, and a prober's are of no use.
    "enable.metrics.push": False,
    # Broken connections are measured and reported as failures, so each need not be logged.
    "log.connection.close": False,
    "log_level": 2,
}

#: A probe without an acknowledgement within 5 s has failed.
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
    "group.id": "fleetgauge-probe",  # required, but never joined: partitions are assigned explicitly
    "enable.auto.commit": False,
    # A position that has expired meanwhile; positions at the end are assigned explicitly.
    "auto.offset.reset": "earliest",
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

#: A duplicate would look like a tracer that was replicated back by a mirror.
TRACER_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 5000,
    "request.timeout.ms": 3000,
    "queue.buffering.max.messages": 1000,
}

#: Records stay in the spool until they are acknowledged, so messages never time out. One request in flight
#: keeps their order without idempotence, which would need the IdempotentWrite permission.
SPOOL_PRODUCER: dict[str, Any] = {
    "acks": "all",
    "max.in.flight.requests.per.connection": 1,
    "linger.ms": 5,
    "compression.type": "lz4",
    "message.timeout.ms": 0,
}

#: Cooperative rebalancing: a member that joins must not take the partition from the leader.
LEADER_ELECTION: dict[str, Any] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "heartbeat.interval.ms": 1000,
    "enable.auto.commit": False,
    "auto.offset.reset": "latest",
}
