"""Kills `fleetgauge stream` again and again: its tables end up as those of an undisturbed run.

    python -m tests.chaos.kill_stream --times 5

Records go to a real topic gradually while the stream, with a batch every 5 s,
is killed with SIGKILL (with its JVM) at seeded random moments and restarted.
Then `fleetgauge run` takes the same records into another lake. Prints one JSON
value; exit 0 iff silver and gold differ in nothing but when they were computed.
"""

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import click
from confluent_kafka import Producer

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    PROBE_MINUTES,
    QUARANTINE,
    Table,
)
from tests.chaos._streaming import PATIENCE_S, Command, Row, Scene, rows, say, scene, size
from tests.oracle.compare import differences
from tests.oracle.week import random_fleet, random_week
from tests.waiting import wait_until

MINUTES = 60
EVERY_S = 5
#: Most of a life on an idle machine.
SHARE_LASTS_S = 40
#: A kill counts from the process's start, or from its first sign of a batch.
AFTER_START_S = (15.0, 45.0)
AFTER_A_BATCH_S = (0.0, 15.0)
A_BATCH_AT_MOST_S = 90
COMPARED = (BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS)
#: What two lakes of the same records may differ in.
WHEN = frozenset({"computed_at", "ingested_at"})


class Sender:
    """Sends shares of the records, each gradually while somebody lives."""

    def __init__(self, where: Scene, records: list[Row], shares: int) -> None:
        settings = {
            "bootstrap.servers": where.telemetry.bootstrap,
            "enable.idempotence": True,
            "log_level": 2,
        }
        self._producer = Producer(settings)
        self._topic = where.topic
        self._shares = [records[number::shares] for number in range(shares)]
        self.sent = 0

    @contextmanager
    def sending_a_share(self) -> Iterator[None]:
        """The next share, one by one; what is left of it when the block ends goes at once."""
        share, hurry = self._shares.pop(0), threading.Event()
        sending = threading.Thread(target=self._send, args=(share, hurry), name="sender")
        sending.start()
        try:
            yield
        finally:
            hurry.set()
            sending.join()
            assert self._producer.flush(PATIENCE_S) == 0

    def _send(self, share: list[Row], hurry: threading.Event) -> None:
        for record in share:
            self._producer.produce(self._topic, PROBE_MINUTE.encode(record), key=record["cluster_id"])
            self._producer.poll(0)
            self.sent += 1
            hurry.wait(SHARE_LASTS_S / len(share))


def live_until_killed(where: Scene, log: Path, rng: Random) -> dict[str, Any]:
    """One life of the stream; when it ended and how far it had come."""
    started = time.monotonic()
    with Command(log, *_stream(where)) as stream:
        in_its_youth = rng.random() < 0.4
        if in_its_youth:
            wait_s = rng.uniform(*AFTER_START_S)
        else:
            # A life that finds nothing new tells of no batch; it is killed all the same.
            give_up_at = time.monotonic() + A_BATCH_AT_MOST_S
            wait_until(
                lambda: "batch " in stream.words or not stream.alive or time.monotonic() > give_up_at,
                PATIENCE_S,
                "a batch",
            )
            wait_s = rng.uniform(*AFTER_A_BATCH_S)
        _let_live(stream, wait_s)
        died_by_itself = not stream.alive
        words = stream.words
        killed = stream.kill()
    return {
        "after_s": round(time.monotonic() - started, 1),
        "batches_told": sum(line.startswith("batch ") for line in words.splitlines()),
        "records_in_bronze": size(where.lake, PROBE_MINUTES),
        "processes_killed": killed,
        "died_by_itself": died_by_itself,
    }


def _let_live(stream: Command, seconds: float) -> None:
    moment = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= moment or not stream.alive, seconds + 10, "the moment to kill")


def _stream(where: Scene) -> tuple[str, ...]:
    return ("stream", "--config", str(where.config), "--every", str(EVERY_S))


def finish(where: Scene, log: Path, distinct: int) -> dict[str, Any]:
    """A last life until bronze has everything, asked to end as it may be in mid-batch; then the rest."""
    with Command(log, *_stream(where)) as stream:
        wait_until(
            lambda: size(where.lake, PROBE_MINUTES) >= distinct or not stream.alive,
            PATIENCE_S,
            "every record in bronze",
        )
        exit_code = stream.end()
    return {"stream_exit_code": exit_code, "run_ended_well": run_once(where, log, where.lake)}


def run_once(where: Scene, log: Path, lake: Path) -> bool:
    with Command(log, "run", "--config", str(where.config), "--lake", str(lake)) as run:
        return run.wait() == 0


def content(lake: Path, table: Table) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in WHEN} for row in rows(lake, table)]


def table_differences(table: Table, disturbed: Path, undisturbed: Path) -> list[str]:
    """Values compare exactly, but for doubles' last bits."""
    wanted, found = content(undisturbed, table), content(disturbed, table)
    assert wanted, f"{table.path}: nothing to compare"
    return [str(one) for one in differences(table, wanted, found)]


def demonstrate(folder: Path, times: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    rng = Random(seed)
    first = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=MINUTES)
    records = random_week(seed, minutes=MINUTES, start=first)
    distinct = len({(record["run_id"], record["sequence"]) for record in records})
    with scene(folder, random_fleet(seed, minutes=MINUTES, start=first)) as where:
        sender = Sender(where, records, times + 1)
        kills = []
        for number in range(times):
            with sender.sending_a_share():
                kills.append(live_until_killed(where, folder / f"stream-{number}.log", rng))
            say(f"killed {number + 1} of {times}: {kills[-1]}, {sender.sent} of {len(records)} records sent")
        say("no more kills; letting it finish")
        with sender.sending_a_share():
            ends = finish(where, folder / "stream-last.log", distinct)
        say("the undisturbed run into another lake")
        other = folder / "undisturbed"
        ends["undisturbed_run_ended_well"] = run_once(where, folder / "run.log", other)
        found = {table.path: table_differences(table, where.lake, other) for table in COMPARED}
        sizes = {
            table.path: [size(where.lake, table), size(other, table)]
            for table in (PROBE_MINUTES, QUARANTINE, *COMPARED)
        }
    report: dict[str, Any] = {
        "kills": kills,
        "records": len(records),
        "distinct": distinct,
        **ends,
        "rows_disturbed_and_undisturbed": sizes,
        "differences": {path: len(one) for path, one in found.items()},
        "examples": {path: one[:5] for path, one in found.items() if one},
        "seconds": round(time.monotonic() - started),
    }
    report["passed"] = (
        not any(found.values())
        and ends == {"stream_exit_code": 0, "run_ended_well": True, "undisturbed_run_ended_well": True}
        and sizes[PROBE_MINUTES.path] == [distinct, distinct]
        and not any(kill["died_by_itself"] for kill in kills)
    )
    return report


@click.command()
@click.option("--times", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True)
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Keep logs and both lakes there.")
def main(times: int, seed: int, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-kills-") as passing:
        where = (folder or Path(passing)).resolve()
        where.mkdir(parents=True, exist_ok=True)
        report = demonstrate(where, times, seed)
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
