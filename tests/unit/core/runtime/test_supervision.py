"""Supervised processes: real ones, which get real signals."""

import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

DEADLINE_S = 30

_PROGRAM = """
import ctypes, os, signal, sys, threading, time
import click
from fleetgauge_core.runtime import cli
from fleetgauge_core.runtime.supervision import request_shutdown_on_error, supervise_process

if "by-nohup" not in sys.argv:
    # The tests themselves may have been started by nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

def fail():
    raise ValueError("what it was")

def loop(shutdown):
    print("ready", flush=True)
    while not shutdown.wait(0.01):
        pass

def ends(shutdown):
    loop(shutdown)

def thread_fails(shutdown):
    threading.Thread(target=fail, name="worker").start()
    loop(shutdown)

def fails(shutdown):
    print("ready", flush=True)
    fail()

def never_ends(shutdown):
    loop(shutdown)
    threading.Event().wait()

def fails_and_never_ends(shutdown):
    try:
        with request_shutdown_on_error(shutdown):
            fails(shutdown)
    finally:
        threading.Event().wait()

def thread_exits(shutdown):
    threading.Thread(target=sys.exit).start()
    loop(shutdown)

def thread_fails_at_the_shutdown(shutdown):
    loop(shutdown)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()

def stderr_is_blocked(shutdown):
    os.set_blocking(2, False)
    try:
        while True:
            os.write(2, bytes(4096))
    except BlockingIOError:
        os.set_blocking(2, True)
    never_ends(shutdown)

def file_is_missing(shutdown):
    print("ready", flush=True)
    open("/nowhere/at-all")

def module_is_missing(shutdown):
    print("ready", flush=True)
    import fleetgauge_no_such_module

def stuck_in_a_library(shutdown):
    lock = ctypes.create_string_buffer(64)
    print("ready", flush=True)
    ctypes.CDLL(None).pthread_mutex_lock(lock)
    ctypes.CDLL(None).pthread_mutex_lock(lock)

def waits(shutdown):
    print("ready", flush=True)
    threading.Event().wait()

def thread_fails_while_waiting(shutdown):
    print("ready", flush=True)
    threading.Thread(target=fail, name="worker").start()
    threading.Event().wait()

def cleans_up(shutdown):
    try:
        waits(shutdown)
    finally:
        # A second request does not break this off.
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        print("cleaned up", flush=True)

def never_cleans_up(shutdown):
    try:
        waits(shutdown)
    finally:
        threading.Event().wait()

@click.command(cls=cli.Command)
def command():
    options = sys.argv[2:]
    with supervise_process(
        0.5, ends_on_hangup="reloads" not in options, interrupts="interrupts" in options
    ) as shutdown:
        globals()[sys.argv[1]](shutdown)
    print("ended", flush=True)

command.main(args=[])
"""


def run(
    behaviour: str, *options: str, send: Sequence[signal.Signals] = (), prefix: Sequence[str] = ()
) -> tuple[int, str, str]:
    """Return the exit code, the last line of stdout and the last line of stderr."""
    command = [*prefix, sys.executable, "-c", _PROGRAM, behaviour, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        for number in send:
            process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out.strip(), err.splitlines()[-1] if err else ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_process(number: signal.Signals) -> None:
    assert run("ends", send=[number]) == (0, "ended", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_a_block_that_does_not_look_at_the_flag_once(number: signal.Signals) -> None:
    code, out, last_line = run("cleans_up", "interrupts", send=[number])
    assert (code, out, last_line) == (1, "cleaned up", "Aborted!")


def test_a_thread_that_fails_interrupts_such_a_block() -> None:
    code, _, last_line = run("thread_fails_while_waiting", "interrupts")
    assert (code, last_line) == (1, "fleetgauge: the thread worker failed: ValueError: what it was")


def test_a_clean_up_after_an_interruption_has_the_deadline() -> None:
    code, _, last_line = run("never_cleans_up", "interrupts", send=[signal.SIGTERM])
    assert code == 1
    assert "did not end by itself" in last_line


def test_a_hangup_does_not_end_a_process_that_reloads_or_was_started_by_nohup() -> None:
    for options, prefix in ((("reloads",), ()), (("by-nohup",), ("nohup",))):
        code, out, _ = run("ends", *options, send=[signal.SIGHUP, signal.SIGTERM], prefix=prefix)
        assert (code, out) == (0, "ended")


@pytest.mark.parametrize(
    ("behaviour", "part"), [("thread_fails", "the thread worker"), ("fails", "the main thread")]
)
def test_a_part_that_fails_ends_the_process_with_its_reason_in_the_last_line(
    behaviour: str, part: str
) -> None:
    assert run(behaviour) == (1, "", f"fleetgauge: {part} failed: ValueError: what it was")


@pytest.mark.parametrize("behaviour", ["never_ends", "stuck_in_a_library"])
def test_a_process_that_does_not_end_by_itself_is_ended_at_its_deadline(behaviour: str) -> None:
    code, out, last_line = run(behaviour, send=[signal.SIGTERM])
    assert (code, out) == (1, "")
    assert last_line.startswith("fleetgauge: ended after 0.5 s, in which it did not end by itself; threads: ")
    assert "MainThread" in last_line


def test_a_clean_up_that_never_ends_after_a_failure_is_ended_at_the_deadline() -> None:
    code, out, last_line = run("fails_and_never_ends")
    assert (code, out) == (1, "")
    assert "did not end by itself" in last_line


def test_a_thread_that_exits_or_fails_at_the_shutdown_is_no_failure_of_the_process() -> None:
    for behaviour in ("thread_exits", "thread_fails_at_the_shutdown"):
        code, out, _ = run(behaviour, send=[signal.SIGTERM])
        assert (code, out) == (0, "ended")


def test_a_blocked_stderr_does_not_keep_the_process_beyond_its_deadline() -> None:
    command = [sys.executable, "-c", _PROGRAM, "stderr_is_blocked"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 1


@pytest.mark.parametrize(
    ("behaviour", "line"),
    [
        ("file_is_missing", "/nowhere/at-all: No such file or directory: "),
        ("module_is_missing", "-c needs fleetgauge_no_such_module, which is not installed: "),
    ],
)
def test_what_the_user_can_mend_stays_one_line_with_exit_code_2(behaviour: str, line: str) -> None:
    code, out, last_line = run(behaviour)
    assert (code, out) == (2, "")
    assert last_line.startswith(f"fleetgauge: {line}")
