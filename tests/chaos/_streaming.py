"""A telemetry cluster, commands as processes, and tables, as the chaos demonstrations share them."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import yaml
from deltalake import DeltaTable

from fleetgauge_core.fleet import Fleet, Telemetry, load_fleet
from fleetgauge_core.kafka import ClusterAdmin, ensure_telemetry_topics
from fleetgauge_core.tables import ColumnType, Table
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.waiting import wait_until

#: Spark starts within a minute on a busy machine; the first batch takes as long again.
DEADLINE_S = 300
_GRACE_S = 60
#: A local fleet needs a cluster that its fleet file measures, so this one is not called telemetry.
CARRIER = "carrier"

FLEETGAUGE = (sys.executable, "-m", "fleetgauge_core")

Row = dict[str, Any]


def log_progress(text: str) -> None:
    """Write a progress message to stderr; stdout is reserved for the result."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


@dataclass(frozen=True, slots=True)
class Scene:
    """A fleet file, the path of its lake, and a telemetry cluster with its topics."""

    folder: Path
    config: Path
    fleet: Fleet
    telemetry: Telemetry

    @property
    def lake(self) -> Path:
        return Path(self.fleet.lake)

    @property
    def topic(self) -> str:
        return self.telemetry.topics.probe_minutes.name

    def topic_id(self) -> str:
        admin = ClusterAdmin(self.telemetry.access)
        admin.start()
        view = admin.describe_topic(self.topic)
        assert view is not None
        return view.topic_id


@contextlib.contextmanager
def create_scene(folder: Path, document: Mapping[str, Any]) -> Iterator[Scene]:
    """Run a telemetry cluster of one broker for the fleet that ``document`` describes."""
    local = LocalFleet(folder / "brokers", (ClusterSpec(CARRIER, 1),), progress=log_progress)
    with local:
        config = folder / "fleet.yaml"
        telemetry = {"bootstrap": local.bootstrap(CARRIER)}
        config.write_text(yaml.safe_dump({"lake": "./lake", **document, "telemetry": telemetry}))
        fleet = load_fleet(config)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        yield Scene(folder, config, fleet, fleet.telemetry)


class Command:
    """The `fleetgauge` command as a separate process whose output goes to a file."""

    def __init__(self, log: Path, *arguments: str, program: Sequence[str] = FLEETGAUGE) -> None:
        self._log = log
        self._arguments = arguments
        self._program = program

    def __enter__(self) -> Self:
        with self._log.open("ab") as output:
            self._output_start = output.tell()
            self._process = subprocess.Popen(
                [*self._program, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes: dict[int, psutil.Process] = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the process tree, whatever happened in the block."""
        self.kill()

    @property
    def is_alive(self) -> bool:
        self.tree()
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """The output so far."""
        with self._log.open("rb") as log:
            log.seek(self._output_start)
            return log.read().decode(errors="replace")

    def wait(self, timeout_s: float = DEADLINE_S) -> int:
        """Wait until it ends and return its exit code."""
        wait_until(lambda: not self.is_alive, timeout_s, f"{self._arguments[0]} to end")
        return self._process.wait()

    def end(self) -> int:
        """Send SIGTERM and return its exit code."""
        self.tree()
        self._process.terminate()
        return self.wait(_GRACE_S)

    def kill(self) -> int:
        """Kill the process, its JVM and their children; return how many there were."""
        killed = 0
        while tree := self.tree():
            for process in tree:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
                    killed += 1
            self._process.poll()
            psutil.wait_procs(tree, timeout=5)
        self._process.wait()
        return killed

    def tree(self) -> list[psutil.Process]:
        """Return the living processes of its tree, including those whose parent has ended since."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._processes.setdefault(self._process.pid, psutil.Process(self._process.pid))
        for process in list(self._processes.values()):
            with contextlib.suppress(psutil.NoSuchProcess):
                self._processes |= {
                    child.pid: child
                    for child in process.children(recursive=True)
                    if child.pid not in self._processes
                }
        return [process for process in self._processes.values() if _lives(process)]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def rows(lake: Path, table: Table, columns: list[str] | None = None) -> list[Row]:
    """Return a table's rows, with maps as dicts; none if the table does not exist."""
    path = str(lake / table.path)
    if not DeltaTable.is_deltatable(path):
        return []
    table_rows: list[Row] = DeltaTable(path).to_pyarrow_table(columns=columns).to_pylist()
    maps = [
        column.name
        for column in table.columns
        if column.type is ColumnType.COUNT_MAP and (not columns or column.name in columns)
    ]
    return [row | {name: dict(row[name] or ()) for name in maps} for row in table_rows]


def size(lake: Path, table: Table) -> int:
    path = str(lake / table.path)
    return (
        DeltaTable(path).to_pyarrow_table(columns=[table.key[0]]).num_rows
        if DeltaTable.is_deltatable(path)
        else 0
    )
