"""A simulated fleet as its agent's records: in Avro files, or sent to a topic."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import fastavro

from fleetgauge_core.contract import PROBE_MINUTE, ProbeMinute
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, RecordProducer, ensure_topics
from fleetgauge_pipelines.jobs.progress import Advance
from fleetgauge_pipelines.simulation import SimulatedFleet
from fleetgauge_pipelines.simulation.pace import HOUR, WEEK
from fleetgauge_pipelines.simulation.records import probe_minutes

_NAMES = tuple(field.name for field in fields(ProbeMinute))
_DELIVERED_WITHIN_S = 60


def write_files(simulated: SimulatedFleet, folder: Path, advance: Advance) -> int:
    """A file a cluster, as `fleetgauge backfill` reads them; returns how many records they hold."""
    folder.mkdir()
    schema = fastavro.parse_schema(json.loads(PROBE_MINUTE.text))
    written = 0

    def counted(cluster: int) -> Iterator[dict[str, object]]:
        nonlocal written
        for record in _records(simulated, cluster, advance):
            written += 1
            yield {name: getattr(record, name) for name in _NAMES}

    for cluster, profile in enumerate(simulated.profiles):
        with (folder / f"{profile.cluster_id}.avro").open("wb") as file:
            # The marker between blocks is random by default; the same seed shall give the same bytes.
            fastavro.writer(file, schema, counted(cluster), sync_marker=2 * PROBE_MINUTE.fingerprint)
    return written


def send(simulated: SimulatedFleet, telemetry: Telemetry, advance: Advance) -> int:
    """To the topic of probe minutes; returns how many records it took.

    Raises KafkaUnavailableError where the telemetry cluster does not take them all.
    """
    ensure_topics(telemetry)
    producer = RecordProducer(telemetry.access, "fleetgauge-simulate")
    producer.start()
    for cluster in range(simulated.clusters):
        records = _records(simulated, cluster, advance)
        keyed = ((record.cluster_id, record.encode()) for record in records)
        producer.send_all(telemetry.topics.probe_minutes.name, keyed)
    undelivered = producer.stop(_DELIVERED_WITHIN_S) + producer.failed
    if undelivered:
        raise KafkaUnavailableError(f"{telemetry.bootstrap} did not take {undelivered} records")
    return producer.delivered


def _records(simulated: SimulatedFleet, cluster: int, advance: Advance) -> Iterator[ProbeMinute]:
    for week in range(simulated.weeks):
        part = simulated.part(cluster, week)
        for hour in range(week * WEEK // HOUR, min((week + 1) * WEEK // HOUR, simulated.hours)):
            yield from probe_minutes(part, hour)
            advance("hours", cluster * simulated.hours + hour + 1, simulated.clusters * simulated.hours)
