"""Write a simulated fleet's probe records to Avro files, or send them to the telemetry topic."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import fastavro

from fleetgauge_core.contract import PROBE_MINUTE, ProbeMinute
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError, RecordProducer, ensure_telemetry_topics
from fleetgauge_pipelines.jobs.progress import ReportProgress
from fleetgauge_pipelines.simulation import SimulatedFleet
from fleetgauge_pipelines.simulation.latency_trend import HOUR, WEEK
from fleetgauge_pipelines.simulation.records import make_probe_minutes

_FIELD_NAMES = tuple(field.name for field in fields(ProbeMinute))
_DELIVERY_TIMEOUT_S = 60


def write_record_files(simulated: SimulatedFleet, folder: Path, advance: ReportProgress) -> int:
    """Write an Avro file for each cluster, for `fleetgauge backfill`; return the number of records."""
    folder.mkdir()
    schema = fastavro.parse_schema(json.loads(PROBE_MINUTE.text))
    written = 0

    def count_rows(cluster: int) -> Iterator[dict[str, object]]:
        nonlocal written
        for record in _iterate_records(simulated, cluster, advance):
            written += 1
            yield {name: getattr(record, name) for name in _FIELD_NAMES}

    for cluster, profile in enumerate(simulated.profiles):
        with (folder / f"{profile.cluster_id}.avro").open("wb") as file:
            # The marker between blocks is random by default; with a fixed one the same seed gives the same
            # bytes.
            fastavro.writer(file, schema, count_rows(cluster), sync_marker=2 * PROBE_MINUTE.fingerprint)
    return written


def send_records(simulated: SimulatedFleet, telemetry: Telemetry, advance: ReportProgress) -> int:
    """Send the records to the topic of probe minutes, and return how many were acknowledged.

    Raises: KafkaUnavailableError when the telemetry cluster does not acknowledge all of them.
    """
    ensure_telemetry_topics(telemetry)
    producer = RecordProducer(telemetry.access, "fleetgauge-simulate")
    producer.start()
    for cluster in range(simulated.clusters):
        records = _iterate_records(simulated, cluster, advance)
        keyed = ((record.cluster_id, record.encode()) for record in records)
        producer.send_all(telemetry.topics.probe_minutes.name, keyed)
    undelivered = producer.stop(_DELIVERY_TIMEOUT_S) + producer.failed
    if undelivered:
        raise KafkaUnavailableError(f"{telemetry.bootstrap} did not acknowledge {undelivered} records")
    return producer.delivered


def _iterate_records(
    simulated: SimulatedFleet, cluster: int, advance: ReportProgress
) -> Iterator[ProbeMinute]:
    for week in range(simulated.weeks):
        simulated_week = simulated.simulate_week(cluster, week)
        for hour in range(week * WEEK // HOUR, min((week + 1) * WEEK // HOUR, simulated.hours)):
            yield from make_probe_minutes(simulated_week, hour)
            advance("hours", cluster * simulated.hours + hour + 1, simulated.clusters * simulated.hours)
