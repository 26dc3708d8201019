"""What the demonstrations on the stream share: a telemetry cluster, the command as a process, its tables."""

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

from fleetgauge_core.fleet import Fleet, Telemetry, load
from fleetgauge_core.kafka import Admin, ensure_topics
from fleetgauge_core.tables import Table, Type
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.waiting import wait_until

#: Spark starts within a minute on a busy machine; the first batch takes as long again.
PATIENCE_S = 300
_GRACE_S = 60
#: Any name but telemetry's: a local fleet needs a cluster that its own fleet file measures.
CARRIER = "carrier"

FLEETGAUGE = (sys.executable, "-m", "fleetgauge_core")

Row = dict[str, Any]


def say(text: str) -> None:
    """For a person; stdout carries the answer alone."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


@dataclass(frozen=True, slots=True)
class Scene:
    """A fleet file, its lake-to-be, and a telemetry cluster whose topics are there."""

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
        admin = Admin(self.telemetry.access)
        admin.start()
        view = admin.topic(self.topic)
        assert view is not None
        return view.topic_id


@contextlib.contextmanager
def scene(folder: Path, document: Mapping[str, Any]) -> Iterator[Scene]:
    """A telemetry cluster of one broker for the fleet that ``document`` describes."""
    local = LocalFleet(folder / "brokers", (ClusterSpec(CARRIER, 1),), progress=say)
    with local:
        config = folder / "fleet.yaml"
        telemetry = {"bootstrap": local.bootstrap(CARRIER)}
        config.write_text(yaml.safe_dump({"lake": "./lake", **document, "telemetry": telemetry}))
        fleet = load(config)
        assert fleet.telemetry is not None
        ensure_topics(fleet.telemetry)
        yield Scene(folder, config, fleet, fleet.telemetry)


class Command:
    """`fleetgauge` with some arguments, as a process of its own whose words go to a file."""

    def __init__(self, log: Path, *arguments: str, program: Sequence[str] = FLEETGAUGE) -> None:
        self._log = log
        self._arguments = arguments
        self._program = program

    def __enter__(self) -> Self:
        with self._log.open("ab") as output:
            self._begins_at = output.tell()
            self._process = subprocess.Popen(
                [*self._program, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._seen: dict[int, psutil.Process] = {}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """No process outlives the block, whatever happened in it."""
        self.kill()

    @property
    def alive(self) -> bool:
        self.tree()
        return self._process.poll() is None

    @property
    def words(self) -> str:
        """What it has said so far."""
        with self._log.open("rb") as log:
            log.seek(self._begins_at)
            return log.read().decode(errors="replace")

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Its exit code."""
        wait_until(lambda: not self.alive, timeout_s, f"{self._arguments[0]} to end")
        return self._process.wait()

    def end(self) -> int:
        """Ask it to end; its exit code."""
        self.tree()
        self._process.terminate()
        return self.wait(_GRACE_S)

    def kill(self) -> int:
        """SIGKILL for the process, its JVM and their children; how many there were."""
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
        """Everything of its tree that lives; what was seen once stays known when its parent is gone."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._seen.setdefault(self._process.pid, psutil.Process(self._process.pid))
        for process in list(self._seen.values()):
            with contextlib.suppress(psutil.NoSuchProcess):
                self._seen |= {
                    child.pid: child
                    for child in process.children(recursive=True)
                    if child.pid not in self._seen
                }
        return [process for process in self._seen.values() if _lives(process)]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def rows(lake: Path, table: Table, columns: list[str] | None = None) -> list[Row]:
    """A table's rows, maps as dicts; none while it is not there."""
    path = str(lake / table.path)
    if not DeltaTable.is_deltatable(path):
        return []
    found: list[Row] = DeltaTable(path).to_pyarrow_table(columns=columns).to_pylist()
    maps = [
        column.name
        for column in table.columns
        if column.type is Type.COUNTS and (not columns or column.name in columns)
    ]
    return [row | {name: dict(row[name] or ()) for name in maps} for row in found]


def size(lake: Path, table: Table) -> int:
    path = str(lake / table.path)
    return (
        DeltaTable(path).to_pyarrow_table(columns=[table.key[0]]).num_rows
        if DeltaTable.is_deltatable(path)
        else 0
    )
