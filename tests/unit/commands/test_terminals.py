"""What reading commands print on terminals of any width and encoding: the same words as into a pipe."""

import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from threading import Thread

import pytest
from rich.cells import cell_len

from fleetgauge_core.runtime.cli import main
from fleetgauge_core.runtime.standard_streams import PLAIN, protect_standard_streams
from tests.browser.lake import ORDERS
from tests.exits import READING_COMMANDS
from tests.promises.run_promises import write_inputs

TEXT_COMMANDS = [
    *(command for command in READING_COMMANDS if not {"--json", "--csv", "html"} & set(command)),
    ("doctor",),
]
#: Lines of the time that has passed since.
_AGES = re.compile(r"^.* ago\b.*$", re.MULTILINE)
_ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small lake; a reason in it looks like markup, and like a sign with a name."""
    folder = tmp_path_factory.mktemp("inputs")
    with chdir(folder):
        write_inputs(folder)
        reason = "a disk :100: [/rack] of [bold]broker 2[/] – from Zürich to 東京"
        when = ("--from", "2026-03-05T10:00:00Z", "--to", "2026-03-05T11:00:00Z", "--author", "Zoë")
        main(["correct", "add", "--cluster", ORDERS, *when, "--reason", reason], standalone_mode=False)
    return folder


@contextmanager
def terminal(columns: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the descriptor of a terminal, and what has been written to it, which is complete afterwards."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    written: list[bytes] = []
    reader = Thread(target=_read, args=(master, written))
    reader.start()
    try:
        yield slave, written
    finally:
        os.close(slave)
        reader.join()
        os.close(master)


def _read(descriptor: int, written: list[bytes]) -> None:
    try:
        while data := os.read(descriptor, 65536):
            written.append(data)
    except OSError:
        # Its other side is closed.
        pass


def run(arguments: Sequence[str], descriptor: int, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command in this process with both standard streams on a descriptor."""
    # Kept open: a stream that is replaced closes its descriptor otherwise.
    streams = [io.TextIOWrapper(os.fdopen(os.dup(descriptor), "wb"), encoding=encoding) for _ in range(2)]
    with monkeypatch.context() as patch:
        # These outrank what the terminal says of itself.
        for variable in ("COLUMNS", "LINES"):
            patch.delenv(variable, raising=False)
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        patch.setattr("fleetgauge_core.runtime.standard_streams._STDOUT", streams[0].fileno())
        patch.setattr("fleetgauge_core.runtime.standard_streams._STDERR", streams[1].fileno())
        protect_standard_streams()
        with pytest.raises(SystemExit) as ended:
            main(arguments, prog_name="fleetgauge")
        assert ended.value.code in {0, 1, 2}
        sys.stdout.flush()
        sys.stderr.flush()
    for stream in streams:
        stream.close()


def run_into_file(arguments: Sequence[str], file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file.open("wb") as output:
        run(arguments, output.fileno(), "utf-8", monkeypatch)


def words_of(text: str) -> set[str]:
    """Return what is between white space and frames of tables, if it has a letter or a digit."""
    words = re.split(r"[\s|│┃─]+", _AGES.sub("", text))
    return {word.rstrip(":") for word in words if re.search(r"\w", word)}


@pytest.mark.parametrize(
    ("columns", "encoding"), [(40, "ascii"), (80, "latin-1"), (120, "utf-8"), (300, "utf-8")]
)
@pytest.mark.parametrize("arguments", TEXT_COMMANDS, ids=" ".join)
def test_a_terminal_shows_every_word_that_a_pipe_gets(
    arguments: Sequence[str],
    columns: int,
    encoding: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    file = folder / f"piped-{TEXT_COMMANDS.index(arguments)}"
    if not file.exists():
        run_into_file(arguments, file, monkeypatch)
    piped = file.read_text(encoding="utf-8")
    with terminal(columns) as (descriptor, written):
        run(arguments, descriptor, encoding, monkeypatch)
    shown = b"".join(written).decode(encoding)
    expected = {word.encode(encoding, PLAIN).decode(encoding) for word in words_of(piped)}
    missing = expected - words_of(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", shown))
    # What doctor measures changes from one run to the next.
    assert [word for word in missing if arguments != ("doctor",) or word.isalpha()] == []
    assert "Traceback" not in shown


@pytest.mark.parametrize("columns", [40, 80, 120, 300])
def test_a_table_is_as_wide_as_the_terminal_at_most(
    columns: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with terminal(columns) as (descriptor, written):
        run(["slo"], descriptor, "utf-8", monkeypatch)
    lines = b"".join(written).decode().splitlines()
    frames = [line for line in lines if "─" in line]
    assert bool(frames) == (columns >= 80)
    assert all(cell_len(line) <= columns for line in frames)


@pytest.mark.parametrize(
    ("environment", "is_styled"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=lambda value: str(value),
)
def test_styles_are_left_out_by_request_and_where_a_terminal_has_none(
    environment: dict[str, str], is_styled: bool, folder: Path
) -> None:
    written = run_as_process(["slo"], folder, environment)
    assert b"orders-eu" in written
    assert (_ESCAPE.encode() in written) == is_styled


def test_a_pipe_gets_no_styles(folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "fleetgauge_core", "slo"], cwd=folder, capture_output=True, check=True
    )
    assert _ESCAPE.encode() not in result.stdout + result.stderr


def run_as_process(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> bytes:
    """Return what a command writes to both its streams on a terminal of 80 columns."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    with terminal(80) as (descriptor, written):
        subprocess.run(
            [sys.executable, "-m", "fleetgauge_core", *arguments],
            cwd=folder,
            env=inherited | environment,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            timeout=120,
            check=False,
        )
    return b"".join(written)
