"""Repeatedly kills `fleetgauge stream`: its tables end up equal to those of an undisturbed run.

    python -m tests.chaos.kill_stream --times 5

Records go to a real topic gradually while the stream, with a batch every 5 s,
is killed with SIGKILL (with its JVM) at seeded random moments and restarted.
Then `fleetgauge run` ingests the same records into another lake. Prints one JSON
value; exits with 0 iff silver and gold differ only in when they were computed.
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
from tests.chaos._streaming import DEADLINE_S, Command, Row, Scene, create_scene, log_progress, rows, size
from tests.oracle.compare import find_differences
from tests.oracle.week import random_fleet, random_week
from tests.waiting import wait_until

MINUTES = 60
EVERY_S = 5
#: Most of a run on an idle machine.
SHARE_DURATION_S = 40
#: Delay of a kill after the start of the process, or after its first batch.
AFTER_START_S = (15.0, 45.0)
AFTER_A_BATCH_S = (0.0, 15.0)
BATCH_TIMEOUT_S = 90
COMPARED = (BROKER_MINUTES, CLUSTER_MINUTES, CLUSTER_WEEKS, FLEET_WEEKS)
#: Columns in which two lakes of the same records may differ.
TIME_COLUMNS = frozenset({"computed_at", "ingested_at"})


class Sender:
    """Sends the records in shares, each gradually while the stream runs."""

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
    def sending_share(self) -> Iterator[None]:
        """Send the next share gradually while the block runs, and the rest of it at once at its end."""
        share, is_over = self._shares.pop(0), threading.Event()
        sending = threading.Thread(target=self._send, args=(share, is_over), name="sender")
        sending.start()
        try:
            yield
        finally:
            is_over.set()
            sending.join()
            assert self._producer.flush(DEADLINE_S) == 0

    def _send(self, share: list[Row], is_over: threading.Event) -> None:
        for record in share:
            self._producer.produce(self._topic, PROBE_MINUTE.encode(record), key=record["cluster_id"])
            self._producer.poll(0)
            self.sent += 1
            is_over.wait(SHARE_DURATION_S / len(share))


def run_until_killed(where: Scene, log: Path, rng: Random) -> dict[str, Any]:
    """Run the stream until it is killed; return when it ended and how much it had ingested."""
    started = time.monotonic()
    with Command(log, *_stream(where)) as stream:
        is_early = rng.random() < 0.4
        if is_early:
            wait_s = rng.uniform(*AFTER_START_S)
        else:
            # A stream without new records logs no batch; it is killed as well.
            deadline_s = time.monotonic() + BATCH_TIMEOUT_S
            wait_until(
                lambda: "batch " in stream.output or not stream.is_alive or time.monotonic() > deadline_s,
                DEADLINE_S,
                "a batch",
            )
            wait_s = rng.uniform(*AFTER_A_BATCH_S)
        _wait_before_kill(stream, wait_s)
        died_by_itself = not stream.is_alive
        output = stream.output
        killed = stream.kill()
    return {
        "after_s": round(time.monotonic() - started, 1),
        "batches_told": sum(line.startswith("batch ") for line in output.splitlines()),
        "records_in_bronze": size(where.lake, PROBE_MINUTES),
        "processes_killed": killed,
        "died_by_itself": died_by_itself,
    }


def _wait_before_kill(stream: Command, seconds: float) -> None:
    moment = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= moment or not stream.is_alive, seconds + 10, "the moment to kill")


def _stream(where: Scene) -> tuple[str, ...]:
    return ("stream", "--config", str(where.config), "--every", str(EVERY_S))


def finish(where: Scene, log: Path, distinct: int) -> dict[str, Any]:
    """Run the stream until bronze has every record, stop it, and let `run` process what is left."""
    with Command(log, *_stream(where)) as stream:
        wait_until(
            lambda: size(where.lake, PROBE_MINUTES) >= distinct or not stream.is_alive,
            DEADLINE_S,
            "every record in bronze",
        )
        exit_code = stream.end()
    return {"stream_exit_code": exit_code, "run_ended_well": run_once(where, log, where.lake)}


def run_once(where: Scene, log: Path, lake: Path) -> bool:
    with Command(log, "run", "--config", str(where.config), "--lake", str(lake)) as run:
        return run.wait() == 0


def read_content(lake: Path, table: Table) -> list[Row]:
    return [
        {name: value for name, value in row.items() if name not in TIME_COLUMNS} for row in rows(lake, table)
    ]


def find_table_differences(table: Table, disturbed: Path, undisturbed: Path) -> list[str]:
    """Return the differences of a table; values are compared exactly except for the last bits of doubles."""
    expected, actual = read_content(undisturbed, table), read_content(disturbed, table)
    assert expected, f"{table.path}: nothing to compare"
    return [str(difference) for difference in find_differences(table, expected, actual)]


def demonstrate(folder: Path, times: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    rng = Random(seed)
    first = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=MINUTES)
    records = random_week(seed, minutes=MINUTES, start=first)
    distinct = len({(record["run_id"], record["sequence"]) for record in records})
    with create_scene(folder, random_fleet(seed, minutes=MINUTES, start=first)) as where:
        sender = Sender(where, records, times + 1)
        kills = []
        for number in range(times):
            with sender.sending_share():
                kills.append(run_until_killed(where, folder / f"stream-{number}.log", rng))
            log_progress(
                f"killed {number + 1} of {times}: {kills[-1]}, {sender.sent} of {len(records)} records sent"
            )
        log_progress("no more kills; the stream processes the rest")
        with sender.sending_share():
            endings = finish(where, folder / "stream-last.log", distinct)
        log_progress("running undisturbed into another lake")
        other = folder / "undisturbed"
        endings["undisturbed_run_ended_well"] = run_once(where, folder / "run.log", other)
        differences = {table.path: find_table_differences(table, where.lake, other) for table in COMPARED}
        sizes = {
            table.path: [size(where.lake, table), size(other, table)]
            for table in (PROBE_MINUTES, QUARANTINE, *COMPARED)
        }
    report: dict[str, Any] = {
        "kills": kills,
        "records": len(records),
        "distinct": distinct,
        **endings,
        "rows_disturbed_and_undisturbed": sizes,
        "differences": {path: len(lines) for path, lines in differences.items()},
        "examples": {path: lines[:5] for path, lines in differences.items() if lines},
        "seconds": round(time.monotonic() - started),
    }
    report["passed"] = (
        not any(differences.values())
        and endings == {"stream_exit_code": 0, "run_ended_well": True, "undisturbed_run_ended_well": True}
        and sizes[PROBE_MINUTES.path] == [distinct, distinct]
        and not any(kill["died_by_itself"] for kill in kills)
    )
    return report


@click.command()
@click.option("--times", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="Folder that keeps logs and both lakes."
)
def main(times: int, seed: int, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-kills-") as temporary:
        where = (folder or Path(temporary)).resolve()
        where.mkdir(parents=True, exist_ok=True)
        report = demonstrate(where, times, seed)
    print(json.dumps(report, indent=2))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
