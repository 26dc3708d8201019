"""Supervision of a long-running command: it ends when it is told to, and when a part of it cannot go on.

A process that lives on without one of its threads looks healthy to whoever supervises it from outside, and
is never restarted. One that ends is.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NoReturn

import click

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.runtime.cli import ProcessFailedError
from fleetgauge_core.runtime.shutdown import ShutdownFlag

_log = logging.getLogger("fleetgauge.process")

#: The signals that end a process: of a lost terminal, of Ctrl+C, and of whoever supervises it.
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_WAKE = b"\0"
#: How long the last message may take; whoever should read stderr may not do so.
_LAST_MESSAGE_S = 1.0


class _SupervisedShutdown(ShutdownFlag):
    """A flag with the reason of the first failure; it wakes the thread that keeps the deadline.

    ``interrupts``: the first request by a signal or a failed thread interrupts the main thread, unless that
    has set the flag itself.
    """

    def __init__(self, wakeup: socket.socket, interrupts: bool) -> None:
        super().__init__()
        self._wakeup = wakeup
        self._interrupts = interrupts
        self.failure: str | None = None

    def set(self) -> None:
        super().set()
        if threading.current_thread() is threading.main_thread():
            self._interrupts = False
        # Full only if it holds thousands of requests already.
        with suppress(BlockingIOError):
            self._wakeup.send(_WAKE)

    def fail(self, part: str, error: BaseException) -> None:
        """Log the error that ended a part of the process, and request the shutdown."""
        _log.critical("%s failed", part, exc_info=error)
        self.failure = self.failure or f"{part} failed: {type(error).__name__}: {error}"
        self.set()
        if self._interrupts:
            # Also out of a call that waits, which a flag would not end.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def handle_signal(self, *_: object) -> None:
        """Request the shutdown. Raises: KeyboardInterrupt if the first request is to interrupt the block."""
        interrupts = self._interrupts
        self.set()
        if interrupts:
            raise KeyboardInterrupt


@contextmanager
def supervise_process(
    deadline_s: float, *, ends_on_hangup: bool = True, interrupts: bool = False
) -> Iterator[ShutdownFlag]:
    """Run the block as the main part of this process, and yield the flag that ends it.

    SIGINT and SIGTERM set the flag, as does an exception that ends a thread, and SIGHUP unless the process
    reloads what it was started with by itself. Once it is set, the block has ``deadline_s`` seconds to end,
    clean-up included; then the process ends with exit code 1 whatever it still does. For use in the main
    thread.

    ``interrupts``: the block does not look at the flag, so the first request raises KeyboardInterrupt in it.
    Later ones do not, nor does any after the block has set the flag itself: that would end its clean-up.

    Raises: ProcessFailedError when a thread or the block itself failed unexpectedly. The traceback is in the
    log.
    """
    with ExitStack() as stack:
        requests, wakeup = socket.socketpair()
        stack.callback(requests.close)
        stack.callback(wakeup.close)
        wakeup.setblocking(False)
        shutdown = _SupervisedShutdown(wakeup, interrupts)
        ended = threading.Event()
        _handle_signals(shutdown, wakeup, stack, ends_on_hangup)
        _handle_thread_failures(shutdown, stack)
        deadline = threading.Thread(
            target=_keep_deadline, args=(requests, shutdown, ended, deadline_s), name="deadline", daemon=True
        )
        deadline.start()
        # Runs first, while the sockets are open.
        stack.callback(deadline.join)
        stack.callback(shutdown.set)
        stack.callback(ended.set)
        try:
            yield shutdown
        except (OperationalError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            if shutdown.failure is None:
                raise
        except Exception as error:
            # A missing module, or a file that cannot be used, is for the user to mend: the command says it.
            if isinstance(error, ModuleNotFoundError) or (isinstance(error, OSError) and error.filename):
                raise
            shutdown.fail("the main thread", error)
    if shutdown.failure:
        raise ProcessFailedError(shutdown.failure)


@contextmanager
def request_shutdown_on_error(shutdown: ShutdownFlag) -> Iterator[None]:
    """Set the flag if the block fails, for threads that wait for it and for the deadline of the clean-up."""
    try:
        yield
    except Exception:
        shutdown.set()
        raise


def end_overdue_process(deadline_s: float) -> NoReturn:
    """End this process with exit code 1, and name its threads on stderr unless that blocks or fails."""
    threads = ", ".join(thread.name for thread in threading.enumerate())
    message = (
        f"fleetgauge: ended after {deadline_s:g} s, in which it did not end by itself; threads: {threads}\n"
    )
    try:
        writer = threading.Thread(target=_write_to_stderr, args=(message,), daemon=True)
        writer.start()
        writer.join(_LAST_MESSAGE_S)
    finally:
        os._exit(1)


def _write_to_stderr(message: str) -> None:
    sys.stderr.write(message)
    sys.stderr.flush()


def _handle_signals(
    shutdown: _SupervisedShutdown, wakeup: socket.socket, stack: ExitStack, ends_on_hangup: bool
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        stack.callback(signal.signal, number, signal.signal(number, shutdown.handle_signal))
    # Ignored already if the process was started by nohup.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        on_hangup = shutdown.handle_signal if ends_on_hangup else signal.SIG_IGN
        stack.callback(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, on_hangup))
    # Python calls a handler between two instructions of the main thread. A call into a client library that
    # does not return is none, so the signal also reaches the thread that keeps the deadline.
    stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False))


def _handle_thread_failures(shutdown: _SupervisedShutdown, stack: ExitStack) -> None:
    def handle(failure: threading.ExceptHookArgs) -> None:
        error = failure.exc_value
        if error is None or isinstance(error, SystemExit):
            return
        part = f"the thread {failure.thread.name if failure.thread else 'unknown'}"
        if shutdown.is_set():
            # What a thread meets while everything around it is closed is no reason to be started again.
            _log.warning("%s failed at the shutdown", part, exc_info=error)
        else:
            shutdown.fail(part, error)

    stack.callback(setattr, threading, "excepthook", threading.excepthook)
    threading.excepthook = handle


def _keep_deadline(
    requests: socket.socket, shutdown: ShutdownFlag, ended: threading.Event, deadline_s: float
) -> None:
    """End the process if the block has not ended in time after a request."""
    while not _is_request(requests.recv(1)):
        pass
    if ended.is_set():
        return
    if not shutdown.is_set():
        shutdown.set()
    if not ended.wait(deadline_s):
        end_overdue_process(deadline_s)


def _is_request(received: bytes) -> bool:
    """Return whether the byte requests the shutdown; it may be the number of another signal."""
    return received in (b"", _WAKE) or received[0] in _SIGNALS
