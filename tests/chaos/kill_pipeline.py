"""Repeatedly kills a process of `fleetgauge backfill`: its tables equal those of an undisturbed run.

    python -m tests.chaos.kill_pipeline --times 50

An hour of a simulated fleet is ingested in batches, out of order and with
repeated records; the hour spans the end of a week, which closes between two
batches. At seeded random moments a process gets a SIGKILL. If it is the
driver's Python process or its JVM, the other must end by itself and the batch
is started again. If it is one of two executors of a cluster, or a Python
worker of a local run, the job must finish without it. Finished rounds of ten
kills are kept in a file, and the same command continues after them. Prints one
JSON value; exits with 0 iff that holds every time and the tables differ only in
when they were computed.
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

from fleetgauge_core.tables import ALL_TABLES, QUALITY, Table
from fleetgauge_pipelines.io.cache import default_cache_folder
from fleetgauge_pipelines.io.java import find_java
from fleetgauge_pipelines.jobs import submit
from tests.chaos._results import Results, results_option
from tests.chaos._streaming import FLEETGAUGE, Command, Row, log_progress, rows, size
from tests.oracle.compare import find_differences
from tests.spark.agreement import write_files
from tests.waiting import wait_until

#: Half of the hour belongs to the week that ends here.
WEEK_ENDS = datetime(2026, 6, 1, tzinfo=UTC)
END = WEEK_ENDS + timedelta(minutes=30)
CLOSES = WEEK_ENDS + timedelta(hours=48)
CLUSTERS = 3
KILLS_PER_BATCH = 5
#: A round has a simulated fleet and lakes of its own.
KILLS_PER_ROUND = 10
HALVES = ("python", "jvm")
#: Without one of these, the job continues to the end of its batch.
REPLACED = ("executor", "worker")
PROCESSES = {
    "org.apache.spark.executor.CoarseGrainedExecutorBackend": "executor",
    "org.apache.spark.deploy.SparkSubmit": "jvm",
    "fleetgauge_pipelines.jobs.worker_daemon": "worker",
    "backfill --from": "python",
}
#: Longer than an undisturbed run takes.
DEADLINE_S = 1200
SELF_END_TIMEOUT_S = 60
#: Delay of an early kill after the start, and of a later kill after one of the run's commits: whichever.
AFTER_START_S = (1.0, 8.0)
AFTER_A_COMMIT_S = (0.0, 0.3)
#: Quality results describe ingested batches, and an interrupted batch is ingested twice.
COMPARED = tuple(table for table in ALL_TABLES if table is not QUALITY)


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Records that are ingested together, and the clock that decides which weeks are closed then."""

    folder: Path
    clock: datetime


@dataclass(frozen=True, slots=True)
class Kill:
    """A killed process, the last table written before, and whether the rest of the run ended as expected."""

    kind: str
    after_s: float
    last_written: str
    rest_lived_s: float
    as_it_should: bool


# --- Input --------------------------------------------------------------------


def simulate_fleet(folder: Path, seed: int) -> Path:
    """Write fleet.yaml and records of one hour to a folder and return it."""
    arguments = ("--clusters", CLUSTERS, "--minutes", 60, "--records", "files", "--seed", seed)
    command = [sys.executable, "-m", "fleetgauge_core", "simulate", "--to", folder, *arguments]
    subprocess.run(
        [*map(str, command), "--end", f"{END:%Y-%m-%dT%H:%M:%SZ}"], check=True, capture_output=True
    )
    return folder


def split_records(source: Path, into: Path, count: int, rng: Random) -> list[InputBatch]:
    """Return the records in random order as batches, each with some records of earlier batches."""
    records = [record for file in sorted((source / "records").glob("*.avro")) for record in _read(file)]
    rng.shuffle(records)
    batch_size = -(-len(records) // count)
    return [
        InputBatch(
            write_files(
                into / f"batch-{number}",
                _select_with_repetitions(rng, records, number * batch_size, batch_size),
            ),
            _clock(number, count),
        )
        for number in range(count)
    ]


def _read(file: Path) -> Iterator[Row]:
    with file.open("rb") as avro:
        for record in fastavro.reader(avro):
            assert isinstance(record, dict)
            yield record


def _select_with_repetitions(rng: Random, records: Sequence[Row], first: int, batch_size: int) -> list[Row]:
    earlier = records[:first]
    repeated = rng.sample(earlier, min(len(earlier), batch_size // 5))
    return [*records[first : first + batch_size], *repeated]


def _clock(number: int, count: int) -> datetime:
    """Return a clock for which half of the batches come before the week closes and half after it."""
    return END + timedelta(minutes=5) if number < count // 2 else CLOSES + number * timedelta(minutes=1)


# --- A run -------------------------------------------------------------------


def start_backfill(
    config: Path, batch: InputBatch, lake: Path, program: Sequence[str] = FLEETGAUGE
) -> Command:
    clock = f"{batch.clock:%Y-%m-%dT%H:%M:%SZ}"
    arguments = ("--from", batch.folder, "--clock", clock, "--config", config, "--lake", lake)
    return Command(lake.with_suffix(".log"), "backfill", *map(str, arguments), program=program)


def ingest(config: Path, batch: InputBatch, lake: Path) -> bool:
    """Ingest a batch without a kill; return whether the command succeeded."""
    with start_backfill(config, batch, lake) as run:
        return run.wait(DEADLINE_S) == 0


def build_cluster_command() -> tuple[str, ...]:
    """Return the command under spark-submit, with a master and executors on this machine."""
    home = find_java(default_cache_folder(), log_progress).home
    settings = (
        "spark.driver.extraJavaOptions=-Duser.timezone=UTC",
        "spark.sql.shuffle.partitions=2",
        "spark.ui.enabled=false",
    )
    return (
        "env",
        *(f"JAVA_HOME={home}", f"PYSPARK_PYTHON={sys.executable}", "SPARK_LOCAL_IP=127.0.0.1"),
        str(Path(pyspark.__file__).with_name("bin") / "spark-submit"),
        *("--master", "local-cluster[2,1,1024]"),
        *(word for setting in settings for word in ("--conf", setting)),
        *submit.build_spark_submit_arguments().split(),
    )


def run_until_killed(run: Command, kind: str, lake: Path, commits: int, rng: Random) -> Kill | None:
    """Kill a process of the run, which makes so many commits; return None if the run ended before that."""
    started = time.monotonic()
    before = list_commits(lake)
    if kind not in REPLACED and rng.random() < 0.2:
        _wait_before_kill(run, rng.uniform(*AFTER_START_S))
    else:
        number = rng.randint(1, commits)
        wait_until(
            lambda: len(list_commits(lake) - before) >= number or not run.is_alive, DEADLINE_S, "a commit"
        )
        _wait_before_kill(run, rng.uniform(*AFTER_A_COMMIT_S))
    wait_until(lambda: _find_process(run, kind) is not None or not run.is_alive, DEADLINE_S, kind)
    victim = _find_process(run, kind)
    if victim is None or not run.is_alive:
        return None
    victim.kill()
    killed = time.monotonic()
    last = max(list_commits(lake) - before, key=lambda commit: commit[1], default=("nothing", 0))[0]
    ended_well = run.wait(DEADLINE_S) == 0 if kind in REPLACED else _rest_ends(run)
    return Kill(kind, round(killed - started, 1), last, round(time.monotonic() - killed, 1), ended_well)


def _wait_before_kill(run: Command, seconds: float) -> None:
    moment = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= moment or not run.is_alive, seconds + 10, "the moment to kill")


def list_commits(lake: Path) -> set[tuple[str, int]]:
    """Return the table and time of every commit in the lake but those that created its tables."""
    return {
        (table.path, commit.stat().st_mtime_ns)
        for table in ALL_TABLES
        for commit in (lake / table.path / "_delta_log").glob("*.json")
        if int(commit.stem)
    }


def _find_process(run: Command, kind: str) -> psutil.Process | None:
    """Return the process of a kind, a worker before the one that forks workers; None if there is none yet."""
    of_kind = [process for process in run.tree() if _detect_kind(process) == kind]
    return of_kind[-1] if of_kind else None


def _detect_kind(process: psutil.Process) -> str | None:
    try:
        command_line = " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return None
    return next((kind for word, kind in PROCESSES.items() if word in command_line), None)


def _rest_ends(run: Command) -> bool:
    """Return whether the other processes of the run end by themselves in time."""
    try:
        wait_until(lambda: not run.tree(), SELF_END_TIMEOUT_S, "the other processes to end")
    except TimeoutError:
        return False
    return True


# --- The demonstration -------------------------------------------------------


def ingest_with_kills(
    config: Path,
    batches: Sequence[InputBatch],
    commits: Sequence[int],
    lake: Path,
    times: int,
    rng: Random,
) -> list[Kill]:
    """Ingest every batch with kills, evenly spread over batches and kinds, until it is complete.

    ``commits`` are those of each batch without a kill.
    A run that ends before its kill leaves the kill to the next batch, or to another lake.
    """
    kills: list[Kill] = []
    cluster = build_cluster_command()
    for number, batch in enumerate(batches):
        due = times * (number + 1) // len(batches)
        done = False
        while len(kills) < due and not done:
            is_last = len(kills) == due - 1
            kind = REPLACED[number % len(REPLACED)] if is_last else HALVES[len(kills) % len(HALVES)]
            program = cluster if kind == "executor" else FLEETGAUGE
            with start_backfill(config, batch, lake, program) as run:
                kill = run_until_killed(run, kind, lake, commits[number], rng)
            done = kill is None or (kind in REPLACED and kill.as_it_should)
            if kill is not None:
                kills.append(kill)
                log_progress(f"batch {number + 1} of {len(batches)}, kill {len(kills)} of {times}: {kill}")
        assert done or ingest(config, batch, lake), f"see {lake}.log"
    return kills


def find_table_differences(table: Table, disturbed: Path, undisturbed: Path) -> list[str]:
    """Return the differences in all but volatile columns, except for the last bits of doubles."""
    expected, actual = rows(undisturbed, table), rows(disturbed, table)
    return [str(difference) for difference in find_differences(table, expected, actual)]


def demonstrate(folder: Path, times: int, seed: int) -> dict[str, Any]:
    started = time.monotonic()
    rng = Random(seed)
    source = simulate_fleet(folder / "simulated", seed)
    config = source / "fleet.yaml"
    batches = split_records(source, folder, max(2, times // KILLS_PER_BATCH), rng)
    log_progress("running undisturbed")
    clean, lakes, kills = folder / "undisturbed", list[Path](), list[Kill]()
    commits = []
    for batch in batches:
        before = list_commits(clean)
        assert ingest(config, batch, clean), f"see {clean}.log"
        commits.append(len(list_commits(clean) - before))
    while len(kills) < times:
        lakes.append(folder / f"disturbed-{len(lakes) + 1}")
        kills += ingest_with_kills(config, batches, commits, lakes[-1], times - len(kills), rng)
    differences = {
        table.path: [line for lake in lakes for line in find_table_differences(table, lake, clean)]
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
        "differences": {path: len(lines) for path, lines in differences.items()},
        "examples": {path: lines[:5] for path, lines in differences.items() if lines},
        "each": [asdict(kill) for kill in kills],
        "seconds": round(time.monotonic() - started),
    }
    report["passed"] = not any(differences.values()) and report["not_as_it_should"] == 0
    return report


@click.command()
@click.option("--times", default=50, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True)
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Folder that keeps logs and lakes.")
@results_option("kill_pipeline.jsonl")
def main(times: int, seed: int, folder: Path | None, results: Results) -> None:
    done = {(line["seed"], line["times"]): line for line in results.read()}
    rounds = [
        (seed + number, min(KILLS_PER_ROUND, times - first))
        for number, first in enumerate(range(0, times, KILLS_PER_ROUND))
    ]
    for round_seed, kills in rounds:
        if (round_seed, kills) in done:
            continue
        with tempfile.TemporaryDirectory(prefix="fleetgauge-kills-") as temporary:
            where = (folder or Path(temporary)).resolve() / str(round_seed)
            where.mkdir(parents=True, exist_ok=True)
            done[round_seed, kills] = {"seed": round_seed, "times": kills} | demonstrate(
                where, kills, round_seed
            )
        results.add(done[round_seed, kills])
    reports = [done[key] for key in rounds]
    passed = all(report["passed"] for report in reports)
    print(
        json.dumps(
            {"kills": sum(report["kills"] for report in reports), "passed": passed, "rounds": reports},
            indent=2,
        )
    )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
