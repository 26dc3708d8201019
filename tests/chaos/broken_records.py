"""Sends broken records of every kind among valid ones to a stream: each is quarantined with its reason.

    python -m tests.chaos.broken_records --records 1000

Starts a telemetry cluster and `fleetgauge stream`. Prints one JSON value. Exits
with 0 iff every broken record is in quarantine with its bytes and the right
reason, none has an effect on silver, every valid one is in bronze, silver equals
the oracle's result for the valid records, and the stream is still running.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import click
from confluent_kafka import KafkaError, Message, Producer

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    PROBE_MINUTES,
    QUARANTINE,
)
from tests.chaos._streaming import DEADLINE_S, Command, Row, Scene, create_scene, log_progress, rows, size
from tests.oracle.compare import find_differences
from tests.oracle.oracle import evaluate, read_settings
from tests.spark.broken import REASONS, Broken, Record, broken_of, conflicting, good_record
from tests.waiting import wait_until

CLUSTER = "orders"
FLEET = {"clusters": [{"id": CLUSTER, "bootstrap": "127.0.0.1:1"}]}
#: Valid records never contain it, so every row of it in silver comes from a broken record.
BROKEN_BROKER = 901
GOOD_MINUTES = 30
EVERY_S = 5
#: Slow enough to spread a thousand records over several batches.
SEND_EVERY_S = 0.04


@dataclass
class Sent:
    """Records sent to the topic; broken ones by their source, which is known from the delivery report."""

    good: list[Record] = field(default_factory=list)
    broken: dict[str, Broken] = field(default_factory=dict)
    delivered: int = 0
    failed: int = 0


class Sender:
    """Sends valid and broken records alternately, all to one partition so that their order is kept."""

    def __init__(self, where: Scene, rng: Random) -> None:
        self.sent = Sent()
        self._producer = Producer(
            {"bootstrap.servers": where.telemetry.bootstrap, "enable.idempotence": True, "log_level": 2}
        )
        self._topic, self._topic_id = where.topic, where.topic_id()
        self._rng = rng
        self._sequences = count()
        self._next_s = 0.0
        now = datetime.now(UTC)
        self._first_minute = now.replace(second=0, microsecond=0) - timedelta(minutes=GOOD_MINUTES)
        # A record from the future must still be in the future when the stream reads it.
        self._clock = now + timedelta(hours=1)

    def send_all(self, broken: int) -> None:
        """Send so many broken records, equally of all reasons in random order, among valid ones."""
        reasons = [REASONS[n % len(REASONS)] for n in range(broken)]
        self._rng.shuffle(reasons)
        good = [
            (self._first_minute + n * timedelta(minutes=1), broker, leg)
            for n in range(GOOD_MINUTES)
            for broker in (1, 2, 3)
            for leg in ("client", "leader")
        ]
        for number, reason in enumerate(reasons):
            while good and len(self.sent.good) * broken <= number * GOOD_MINUTES * 6:
                self.send_good(*good.pop(0))
            broken_record = self._broken(reason)
            self._send(broken_record.value, partial(self._record_source, broken_record))
        for remaining in good:
            self.send_good(*remaining)
        self.flush()

    def send_good(self, minute: datetime, broker: int, leg: str) -> None:
        record = good_record(next(self._sequences), minute, CLUSTER, broker, leg)
        self.sent.good.append(record)
        self._send(PROBE_MINUTE.encode(record), lambda _: None)

    def flush(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0

    def _broken(self, reason: str) -> Broken:
        if reason == "conflicting_duplicate":
            winner = self._rng.choice([record for record in self.sent.good if record["leg"] == "client"])
            return Broken(reason, "another broker", conflicting(winner | {"broker_id": BROKEN_BROKER}))
        return broken_of(reason, self._base_record, self._clock, self._rng)

    def _base_record(self) -> Record:
        record = good_record(10_000_000 + next(self._sequences), self._first_minute, CLUSTER, BROKEN_BROKER)
        return record | {"expected_brokers": (BROKEN_BROKER,)}

    def _send(self, value: bytes | None, delivered: Any) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            self.sent.failed += error is not None
            self.sent.delivered += error is None
            delivered(f"{self._topic_id}/{message.partition()}/{message.offset()}")

        self._producer.produce(self._topic, value, key=CLUSTER, on_delivery=report)
        self._next_s = max(self._next_s + SEND_EVERY_S, time.monotonic())
        while (left_s := self._next_s - time.monotonic()) > 0:
            self._producer.poll(left_s)

    def _record_source(self, broken_record: Broken, source: str) -> None:
        self.sent.broken[source] = broken_record


def count_quarantined(lake: Path, sent: Sent) -> Counter[str]:
    quarantined = {row["source"]: (row["reason"], row["value"]) for row in rows(lake, QUARANTINE)}
    return Counter(
        record.reason
        for source, record in sent.broken.items()
        if quarantined.get(source) == (record.reason, record.value)
    )


def count_broken_rows(silver: Sequence[Row]) -> int:
    return sum(row["broker_id"] == BROKEN_BROKER or row["cluster_id"] != CLUSTER for row in silver)


def count_silver_differences(where: Scene, sent: Sent) -> int:
    expected = evaluate(sent.good, read_settings(where.fleet), datetime.now(UTC))
    brokers = find_differences(BROKER_MINUTES, expected.broker_minutes, rows(where.lake, BROKER_MINUTES))
    clusters = find_differences(CLUSTER_MINUTES, expected.cluster_minutes, rows(where.lake, CLUSTER_MINUTES))
    return len(brokers) + len(clusters)


def demonstrate(folder: Path, records: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    with create_scene(folder, FLEET) as where:
        arguments = ("stream", "--config", str(where.config), "--every", str(EVERY_S))
        with Command(folder / "stream.log", *arguments) as stream:
            sender = Sender(where, Random(seed))
            sent = sender.sent
            wait_until(
                lambda: (where.lake / QUARANTINE.path / "_delta_log").is_dir() or not stream.is_alive,
                DEADLINE_S,
                "the stream to start",
            )
            log_progress(f"the stream is running; sending {records} broken records among valid ones")
            sender.send_all(records)
            log_progress("waiting until every record is in bronze or quarantine")
            _wait_for(where, stream, sent)
            last = max(record["minute"] for record in sent.good) + timedelta(minutes=1)
            sender.send_good(last, 1, "client")
            sender.flush()
            log_progress("sending another valid record to check that the stream still works")
            _wait_for(where, stream, sent)
            wait_until(
                lambda: (
                    any(row["minute"] == last for row in rows(where.lake, CLUSTER_MINUTES))
                    or not stream.is_alive
                ),
                DEADLINE_S,
                "the last minute in silver",
            )
            is_alive = stream.is_alive
            exit_code = stream.end() if is_alive else stream.wait()
        return _report(where, sent, is_alive, exit_code) | {"seconds": round(time.monotonic() - started)}


def _wait_for(where: Scene, stream: Command, sent: Sent) -> None:
    """Wait until every record is in bronze or quarantine, or the stream has ended."""

    def is_complete() -> bool:
        return size(where.lake, PROBE_MINUTES) + size(where.lake, QUARANTINE) >= sent.delivered

    wait_until(
        lambda: is_complete() or not stream.is_alive, DEADLINE_S, "every record in bronze or quarantine"
    )


def _report(where: Scene, sent: Sent, is_alive: bool, exit_code: int) -> dict[str, Any]:
    quarantined_by_reason = count_quarantined(where.lake, sent)
    sent_by_reason = Counter(record.reason for record in sent.broken.values())
    stored = Counter(
        (row["run_id"], row["sequence"]) for row in rows(where.lake, PROBE_MINUTES, ["run_id", "sequence"])
    )
    kinds = {
        reason: {"sent": sent_by_reason[reason], "quarantined_rightly": quarantined_by_reason[reason]}
        for reason in REASONS
    }
    report: dict[str, Any] = {
        "broken": len(sent.broken),
        "quarantined": size(where.lake, QUARANTINE),
        "kinds": kinds,
        "good": len(sent.good),
        "good_in_bronze_once": sum(stored[record["run_id"], record["sequence"]] == 1 for record in sent.good),
        "rows_in_bronze": sum(stored.values()),
        "silver_rows_of_broken": count_broken_rows(
            rows(where.lake, BROKER_MINUTES, ["broker_id", "cluster_id"])
        ),
        "silver_differences_from_oracle": count_silver_differences(where, sent),
        "undelivered": sent.failed,
        "stream_alive_to_the_end": is_alive,
        "stream_exit_code": exit_code,
    }
    report["passed"] = (
        all(kind["sent"] == kind["quarantined_rightly"] > 0 for kind in kinds.values())
        and report["quarantined"] == report["broken"]
        and report["rows_in_bronze"] == report["good_in_bronze_once"] == report["good"]
        and not (report["silver_rows_of_broken"] or report["silver_differences_from_oracle"] or sent.failed)
        and is_alive
        and exit_code == 0
    )
    return report


@click.command()
@click.option(
    "--records",
    default=1000,
    show_default=True,
    type=click.IntRange(min=len(REASONS)),
    help="Number of broken records.",
)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="Folder that keeps the brokers' logs and the lake.",
)
def main(records: int, seed: int, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-broken-") as temporary:
        where = (folder or Path(temporary)).resolve()
        where.mkdir(parents=True, exist_ok=True)
        report = demonstrate(where, records, seed)
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
