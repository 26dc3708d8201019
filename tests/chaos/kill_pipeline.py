"""Kills one process of `fleetgauge backfill` again and again: its tables end up as an undisturbed run's.

    python -m tests.chaos.kill_pipeline --times 50

An hour of a simulated fleet comes in pieces, out of order and with
repetitions; the hour lies around the end of a week, which closes between two
pieces. At seeded random moments one process gets a SIGKILL: the driver's
Python or its JVM, then the other has to end by itself and the piece is begun
again; or, on a cluster of two executors, one of these, and the job has to go
on without it. Prints one JSON value; exit 0 iff that is so every time, and
the tables differ in nothing but when they were computed.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import click
import fastavro
import psutil
import pyspark

from fleetgauge_core.tables import ALL, QUALITY, Table
from fleetgauge_pipelines.io.cache import default_cache
from fleetgauge_pipelines.io.java import find_java
from fleetgauge_pipelines.jobs import submit
from tests.chaos._streaming import FLEETGAUGE, Command, Row, rows, say, size
from tests.oracle.compare import differences
from tests.spark.agreement import write_files
from tests.waiting import wait_until

#: Half the hour is of the week that ends here.
WEEK_ENDS = datetime(2026, 6, 1, tzinfo=UTC)
END = WEEK_ENDS + timedelta(minutes=30)
CLOSES = WEEK_ENDS + timedelta(hours=48)
CLUSTERS = 3
KILLS_OF_A_PIECE = 5
HALVES = ("python", "jvm")
PROCESSES = {
    "org.apache.spark.executor.CoarseGrainedExecutorBackend": "executor",
    "org.apache.spark.deploy.SparkSubmit": "jvm",
    "pyspark.daemon": "worker",
    "backfill --from": "python",
}
#: A life that is not killed ends well before; so does what a kill left without its other half.
PATIENCE_S = 1200
ENDS_BY_ITSELF_WITHIN_S = 60
#: From the start to the kill in its youth, from the first commit to a later one.
YOUTH_S = (1.0, 12.0)
AFTER_A_COMMIT_S = (0.0, 6.0)
#: Verdicts are about batches as they came, and a batch that was broken off came twice.
COMPARED = tuple(table for table in ALL if table is not QUALITY)


@dataclass(frozen=True, slots=True)
class Piece:
    """Records that are taken together, and the clock that says which weeks are closed then."""

    folder: Path
    clock: datetime


@dataclass(frozen=True, slots=True)
class Kill:
    """What died, when, what the life had written last, how long the rest lived, and whether as it should."""

    kind: str
    after_s: float
    last_written: str
    rest_lived_s: float
    as_it_should: bool


# --- The pieces --------------------------------------------------------------


def simulated(folder: Path, seed: int) -> Path:
    """A folder with fleet.yaml and records of one hour."""
    arguments = ("--clusters", CLUSTERS, "--minutes", 60, "--records", "files", "--seed", seed)
    command = [sys.executable, "-m", "fleetgauge_core", "simulate", "--to", folder, *arguments]
    subprocess.run(
        [*map(str, command), "--end", f"{END:%Y-%m-%dT%H:%M:%SZ}"], check=True, capture_output=True
    )
    return folder


def pieces(source: Path, into: Path, count: int, rng: Random) -> list[Piece]:
    """The records in no order, cut up; in every piece but the first some that had come before."""
    records = [record for file in sorted((source / "records").glob("*.avro")) for record in _read(file)]
    rng.shuffle(records)
    some = -(-len(records) // count)
    return [
        Piece(
            write_files(into / f"piece-{number}", _with_repetitions(rng, records, number * some, some)),
            _clock(number, count),
        )
        for number in range(count)
    ]


def _read(file: Path) -> Iterator[Row]:
    with file.open("rb") as avro:
        for record in fastavro.reader(avro):
            assert isinstance(record, dict)
            yield record


def _with_repetitions(rng: Random, records: Sequence[Row], first: int, some: int) -> list[Row]:
    before = records[:first]
    return [*records[first : first + some], *rng.sample(before, min(len(before), some // 5))]


def _clock(number: int, count: int) -> datetime:
    """Half of the pieces come while the week that ended is open, half of them revise it."""
    return END + timedelta(minutes=5) if number < count // 2 else CLOSES + number * timedelta(minutes=1)


# --- A life ------------------------------------------------------------------


def take(config: Path, piece: Piece, lake: Path, program: Sequence[str] = FLEETGAUGE) -> Command:
    clock = f"{piece.clock:%Y-%m-%dT%H:%M:%SZ}"
    arguments = ("--from", piece.folder, "--clock", clock, "--config", config, "--lake", lake)
    return Command(lake.with_suffix(".log"), "backfill", *map(str, arguments), program=program)


def taken(config: Path, piece: Piece, lake: Path) -> bool:
    """Undisturbed; whether it ended well."""
    with take(config, piece, lake) as life:
        return life.wait(PATIENCE_S) == 0


def on_a_cluster() -> tuple[str, ...]:
    """The command under spark-submit, with a master and executors on this machine."""
    home = find_java(default_cache(), say).home
    said = (
        "spark.driver.extraJavaOptions=-Duser.timezone=UTC",
        "spark.sql.shuffle.partitions=2",
        "spark.ui.enabled=false",
    )
    return (
        "env",
        *(f"JAVA_HOME={home}", f"PYSPARK_PYTHON={sys.executable}", "SPARK_LOCAL_IP=127.0.0.1"),
        str(Path(pyspark.__file__).with_name("bin") / "spark-submit"),
        *("--master", "local-cluster[2,1,1024]"),
        *(word for one in said for word in ("--conf", one)),
        *submit.words().split(),
    )


def live_until_killed(life: Command, kind: str, lake: Path, rng: Random) -> Kill | None:
    """None if it had ended before its moment came."""
    started = time.monotonic()
    before = commits(lake)
    if kind != "executor" and rng.random() < 0.2:
        _let_live(life, rng.uniform(*YOUTH_S))
    else:
        wait_until(lambda: commits(lake) != before or not life.alive, PATIENCE_S, "a commit")
        _let_live(life, rng.uniform(*AFTER_A_COMMIT_S))
    wait_until(lambda: _of_kind(life, kind) is not None or not life.alive, PATIENCE_S, kind)
    victim = _of_kind(life, kind)
    if victim is None or not life.alive:
        return None
    victim.kill()
    killed = time.monotonic()
    last = max(commits(lake) - before, key=lambda commit: commit[1], default=("nothing", 0))[0]
    well = life.wait(PATIENCE_S) == 0 if kind == "executor" else _rest_ends(life)
    return Kill(kind, round(killed - started, 1), last, round(time.monotonic() - killed, 1), well)


def _let_live(life: Command, seconds: float) -> None:
    moment = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= moment or not life.alive, seconds + 10, "the moment to kill")


def commits(lake: Path) -> set[tuple[str, int]]:
    """Table and time of every commit that a reader would find."""
    return {
        (table.path, commit.stat().st_mtime_ns)
        for table in ALL
        for commit in (lake / table.path / "_delta_log").glob("*.json")
    }


def _of_kind(life: Command, kind: str) -> psutil.Process | None:
    """The process of that kind, as soon as it is there."""
    return next((one for one in life.tree() if _kind(one) == kind), None)


def _kind(process: psutil.Process) -> str | None:
    try:
        words = " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return None
    return next((kind for word, kind in PROCESSES.items() if word in words), None)


def _rest_ends(life: Command) -> bool:
    """Whether nothing of it lives any more before long."""
    try:
        wait_until(lambda: not life.tree(), ENDS_BY_ITSELF_WITHIN_S, "the rest")
    except TimeoutError:
        return False
    return True


# --- The demonstration -------------------------------------------------------


def disturbed(config: Path, of: Sequence[Piece], lake: Path, times: int, rng: Random) -> list[Kill]:
    """Every piece is begun again until it is done; the kills fall evenly on pieces and kinds.

    A life that is done before its moment leaves its kill to the next piece, and the last to another lake.
    """
    kills: list[Kill] = []
    cluster = on_a_cluster()
    for number, piece in enumerate(of):
        due = times * (number + 1) // len(of)
        done = False
        while len(kills) < due and not done:
            # The job goes on without an executor, to the end of its piece.
            kind = "executor" if len(kills) == due - 1 else HALVES[len(kills) % len(HALVES)]
            with take(config, piece, lake, cluster if kind == "executor" else FLEETGAUGE) as life:
                kill = live_until_killed(life, kind, lake, rng)
            done = kill is None or (kind == "executor" and kill.as_it_should)
            if kill is not None:
                kills.append(kill)
                say(f"piece {number + 1} of {len(of)}, kill {len(kills)} of {times}: {kill}")
        assert done or taken(config, piece, lake), f"see {lake}.log"
    return kills


def table_differences(table: Table, disturbed: Path, undisturbed: Path) -> list[str]:
    """All but volatile columns; doubles to their last bits."""
    wanted, found = rows(undisturbed, table), rows(disturbed, table)
    return [str(one) for one in differences(table, wanted, found)]


def demonstrate(folder: Path, times: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    rng = Random(seed)
    source = simulated(folder / "simulated", seed)
    config, of = source / "fleet.yaml", pieces(source, folder, max(2, times // KILLS_OF_A_PIECE), rng)
    say("the undisturbed run")
    clean, lakes, kills = folder / "undisturbed", list[Path](), list[Kill]()
    assert all(taken(config, piece, clean) for piece in of)
    while len(kills) < times:
        lakes.append(folder / f"disturbed-{len(lakes) + 1}")
        kills += disturbed(config, of, lakes[-1], times - len(kills), rng)
    found = {
        table.path: [one for lake in lakes for one in table_differences(table, lake, clean)]
        for table in COMPARED
    }
    report: dict[str, Any] = {
        "kills": len(kills),
        "lakes": len(lakes),
        "kills_by_kind": dict(Counter(kill.kind for kill in kills)),
        "kills_by_last_written": dict(Counter(kill.last_written for kill in kills)),
        "not_as_it_should": sum(not kill.as_it_should for kill in kills),
        "rows_disturbed_and_undisturbed": {
            table.path: [*(size(lake, table) for lake in lakes), size(clean, table)] for table in COMPARED
        },
        "differences": {path: len(one) for path, one in found.items()},
        "examples": {path: one[:5] for path, one in found.items() if one},
        "each": [asdict(kill) for kill in kills],
        "seconds": round(time.monotonic() - started),
    }
    report["passed"] = not any(found.values()) and report["not_as_it_should"] == 0
    return report


@click.command()
@click.option("--times", default=50, show_default=True, type=click.IntRange(min=1))
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
