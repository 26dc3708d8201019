"""Sends broken records of every kind to a stream among good ones: each is quarantined for its reason.

    python -m tests.chaos.broken_records --records 1000

Starts a telemetry cluster of its own and `fleetgauge stream`. Prints one JSON
value; exit 0 iff every broken record lies in quarantine with its bytes and the
right reason, none has left a trace in silver, every good one is in bronze,
silver is what the oracle makes of the good ones, and the stream still lives.
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
from tests.chaos._streaming import PATIENCE_S, Command, Row, Scene, rows, say, scene, size
from tests.oracle.compare import differences
from tests.oracle.oracle import evaluate, settings_of
from tests.spark.broken import REASONS, Broken, Record, broken_of, conflicting, good_record
from tests.waiting import wait_until

CLUSTER = "orders"
FLEET = {"clusters": [{"id": CLUSTER, "bootstrap": "127.0.0.1:1"}]}
#: Good records never name it, so every trace of it in silver is a broken record's.
BROKEN_BROKER = 901
GOOD_MINUTES = 30
EVERY_S = 5
#: Slowly enough that the records of a thousand fall into several batches.
SEND_EVERY_S = 0.04


@dataclass
class Sent:
    """What went to the topic; sources are known once Kafka has said where a record lies."""

    good: list[Record] = field(default_factory=list)
    broken: dict[str, Broken] = field(default_factory=dict)
    delivered: int = 0
    failed: int = 0


class Sender:
    """Good and broken records by turns, all of one partition so that their order holds."""

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
        # What is in the future now must still be so when the stream gets to it.
        self._clock = now + timedelta(hours=1)

    def send_all(self, broken: int) -> None:
        """``broken`` broken records, evenly of all reasons in random order, good ones between."""
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
            one = self._broken(reason)
            self._send(one.value, partial(self._lies_at, one))
        for one_good in good:
            self.send_good(*one_good)
        self.flush()

    def send_good(self, minute: datetime, broker: int, leg: str) -> None:
        record = good_record(next(self._sequences), minute, CLUSTER, broker, leg)
        self.sent.good.append(record)
        self._send(PROBE_MINUTE.encode(record), lambda _: None)

    def flush(self) -> None:
        assert self._producer.flush(PATIENCE_S) == 0

    def _broken(self, reason: str) -> Broken:
        if reason == "conflicting_duplicate":
            winner = self._rng.choice([one for one in self.sent.good if one["leg"] == "client"])
            return Broken(reason, "another broker", conflicting(winner | {"broker_id": BROKEN_BROKER}))
        return broken_of(reason, self._to_be_broken, self._clock, self._rng)

    def _to_be_broken(self) -> Record:
        made = good_record(10_000_000 + next(self._sequences), self._first_minute, CLUSTER, BROKEN_BROKER)
        return made | {"expected_brokers": (BROKEN_BROKER,)}

    def _send(self, value: bytes | None, delivered: Any) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            self.sent.failed += error is not None
            self.sent.delivered += error is None
            delivered(f"{self._topic_id}/{message.partition()}/{message.offset()}")

        self._producer.produce(self._topic, value, key=CLUSTER, on_delivery=report)
        self._next_s = max(self._next_s + SEND_EVERY_S, time.monotonic())
        while (left_s := self._next_s - time.monotonic()) > 0:
            self._producer.poll(left_s)

    def _lies_at(self, one: Broken, source: str) -> None:
        self.sent.broken[source] = one


def quarantined_rightly(lake: Path, sent: Sent) -> Counter[str]:
    found = {row["source"]: row for row in rows(lake, QUARANTINE)}
    return Counter(
        one.reason
        for source, one in sent.broken.items()
        if source in found and (found[source]["reason"], found[source]["value"]) == (one.reason, one.value)
    )


def silver_rows_of_broken(silver: Sequence[Row]) -> int:
    return sum(row["broker_id"] == BROKEN_BROKER or row["cluster_id"] != CLUSTER for row in silver)


def silver_differences(where: Scene, sent: Sent) -> int:
    wanted = evaluate(sent.good, settings_of(where.fleet), datetime.now(UTC))
    brokers = differences(BROKER_MINUTES, wanted.broker_minutes, rows(where.lake, BROKER_MINUTES))
    clusters = differences(CLUSTER_MINUTES, wanted.cluster_minutes, rows(where.lake, CLUSTER_MINUTES))
    return len(brokers) + len(clusters)


def demonstrate(folder: Path, records: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    with scene(folder, FLEET) as where:
        arguments = ("stream", "--config", str(where.config), "--every", str(EVERY_S))
        with Command(folder / "stream.log", *arguments) as stream:
            sender = Sender(where, Random(seed))
            sent = sender.sent
            wait_until(
                lambda: (where.lake / QUARANTINE.path / "_delta_log").is_dir() or not stream.alive,
                PATIENCE_S,
                "the stream to begin",
            )
            say(f"the stream runs; sending {records} broken records among good ones")
            sender.send_all(records)
            say("waiting until all are accounted for")
            _wait_for(where, stream, sent)
            last = max(record["minute"] for record in sent.good) + timedelta(minutes=1)
            sender.send_good(last, 1, "client")
            sender.flush()
            say("one more good record, to see that the stream still works")
            _wait_for(where, stream, sent)
            wait_until(
                lambda: (
                    any(row["minute"] == last for row in rows(where.lake, CLUSTER_MINUTES))
                    or not stream.alive
                ),
                PATIENCE_S,
                "the last minute in silver",
            )
            alive = stream.alive
            exit_code = stream.end() if alive else stream.wait()
        return _report(where, sent, alive, exit_code) | {"seconds": round(time.monotonic() - started)}


def _wait_for(where: Scene, stream: Command, sent: Sent) -> None:
    """Until bronze and quarantine together have every record, or the stream is dead or does not get on."""

    def accounted_for() -> bool:
        return size(where.lake, PROBE_MINUTES) + size(where.lake, QUARANTINE) >= sent.delivered

    wait_until(
        lambda: accounted_for() or not stream.alive, PATIENCE_S, "every record in bronze or quarantine"
    )


def _report(where: Scene, sent: Sent, alive: bool, exit_code: int) -> dict[str, Any]:
    rightly = quarantined_rightly(where.lake, sent)
    of_kind = Counter(one.reason for one in sent.broken.values())
    stored = Counter(
        (row["run_id"], row["sequence"]) for row in rows(where.lake, PROBE_MINUTES, ["run_id", "sequence"])
    )
    kinds = {one: {"sent": of_kind[one], "quarantined_rightly": rightly[one]} for one in REASONS}
    report: dict[str, Any] = {
        "broken": len(sent.broken),
        "quarantined": size(where.lake, QUARANTINE),
        "kinds": kinds,
        "good": len(sent.good),
        "good_in_bronze_once": sum(stored[one["run_id"], one["sequence"]] == 1 for one in sent.good),
        "rows_in_bronze": sum(stored.values()),
        "silver_rows_of_broken": silver_rows_of_broken(
            rows(where.lake, BROKER_MINUTES, ["broker_id", "cluster_id"])
        ),
        "silver_differences_from_oracle": silver_differences(where, sent),
        "undelivered": sent.failed,
        "stream_alive_to_the_end": alive,
        "stream_exit_code": exit_code,
    }
    report["passed"] = (
        all(kind["sent"] == kind["quarantined_rightly"] > 0 for kind in kinds.values())
        and report["quarantined"] == report["broken"]
        and report["rows_in_bronze"] == report["good_in_bronze_once"] == report["good"]
        and not (report["silver_rows_of_broken"] or report["silver_differences_from_oracle"] or sent.failed)
        and alive
        and exit_code == 0
    )
    return report


@click.command()
@click.option(
    "--records", default=1000, show_default=True, type=click.IntRange(min=len(REASONS)), help="Broken ones."
)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="Keep brokers' logs and the lake there."
)
def main(records: int, seed: int, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-broken-") as passing:
        where = (folder or Path(passing)).resolve()
        where.mkdir(parents=True, exist_ok=True)
        report = demonstrate(where, records, seed)
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
