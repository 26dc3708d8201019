"""The command as a process: closed and full streams, terminals that know ASCII only, threads that go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_CLI = [sys.executable, "-m", "fleetgauge_core"]
#: A command whose help needs other characters than ASCII; its output is larger than a pipe's buffer.
_PROGRAM = """
import sys, threading
import click
from fleetgauge_core.runtime import entry_point

@click.command()
@click.option("--exit-code", type=int, default=0)
@click.option("--stderr", "err", is_flag=True)
@click.option("--thread", is_flag=True)
def main(exit_code, err, thread):
    if thread:
        entry_point._THREADS_DEADLINE_S = 0.5
        threading.Thread(target=threading.Event().wait, name="left").start()
    for _ in range(20_000):
        print("latency → 12 µs …", file=sys.stderr if err else sys.stdout)
    raise SystemExit(exit_code)

entry_point.main = main
entry_point.run()
"""


def run_in_shell(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which $0 is the shell and "$@" the program."""
    command = ["bash", "-c", script, "bash", sys.executable, "-c", _PROGRAM, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, timeout=60, check=False
    )


@pytest.mark.parametrize("exit_code", [0, 1, 2])
@pytest.mark.parametrize("reader", ["head -n 1", "true"])
def test_a_reader_that_leaves_does_not_change_the_exit_code(reader: str, exit_code: int) -> None:
    done = run_in_shell(f'"$@" | {reader}; echo "code ${{PIPESTATUS[0]}}"', "--exit-code", str(exit_code))
    assert done.stdout.splitlines()[-1] == f"code {exit_code}"
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_change_the_exit_code(closed: str) -> None:
    assert run_in_shell(f'"$@" {closed}', "--exit-code", "2").returncode == 2


def test_a_result_that_cannot_be_written_is_an_error_of_one_line() -> None:
    done = run_in_shell('"$@" > /dev/full')
    assert (done.returncode, done.stderr) == (
        1,
        "fleetgauge: cannot write to stdout: No space left on device\n",
    )


def test_messages_that_cannot_be_written_are_discarded() -> None:
    assert run_in_shell('"$@" 2> /dev/full', "--stderr").returncode == 0
    assert run_in_shell('"$@" 2> >(true)', "--stderr").returncode == 0


def test_characters_that_the_terminal_does_not_have_are_replaced() -> None:
    done = run_in_shell('"$@"', PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "latency > 12 us ~", "")


def test_a_thread_that_goes_on_after_the_command_does_not_keep_the_process() -> None:
    done = run_in_shell('"$@" > /dev/null', "--thread")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "fleetgauge: ended after 0.5 s, in which it did not end by itself; threads: "
    )
    assert "left" in done.stderr


def test_children_get_the_streams_that_were_closed() -> None:
    program = (
        "import subprocess, sys; from fleetgauge_core.runtime.standard_streams import *; "
        "protect_standard_streams(); "
        "sys.exit(subprocess.run(['bash', '-c', 'echo x && echo y >&2']).returncode)"
    )
    command = ["bash", "-c", '"$@" <&- >&- 2>&-', "bash", sys.executable, "-c", program]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def test_usage_errors_and_results_have_their_documented_exit_codes(tmp_path: Path) -> None:
    codes = {
        subprocess.run([*_CLI, *arguments], capture_output=True, cwd=tmp_path, check=False).returncode
        for arguments in (["slo", "--nothing"], ["slo"])
    }
    assert codes == {2}
    assert subprocess.run([*_CLI, "--version"], capture_output=True, check=False).returncode == 0
