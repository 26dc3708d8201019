"""A lease by numbered objects in a store that can refuse to create one that exists.

Motivation: several machines may write to a lake in an object store or on a network file system, where no
kernel keeps a lock. All common stores can create an object only if it does not exist; fewer can replace one
conditionally.

Approach: whoever creates the object with the highest number holds the lease, and renews it by writing the
object again. Others wait until it has not changed for as long as the lease lasts, by their own clock, and
then create the next number, which only one of them can. A holder may commit until two thirds of that time
have passed since it last began to renew; then, as after it was suspended, it has to create the next number
itself.

So two processes can commit at once only if a commit takes over a third of the lease's duration, or if its
process is suspended between the check and the end of the commit: the store of the tables checks no fencing
token (Kleppmann, How to do distributed locking, 2016).
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

from fleetgauge_core.errors import OperationalError

_log = logging.getLogger("fleetgauge.lease")

DURATION_S = 60.0
_RENEW_EVERY_S = 10.0
_POLL_S = 1.0
#: Objects of earlier holders that are kept, for whoever wants to know who wrote when.
_KEPT = 5


class LeaseLostError(OperationalError):
    """Another process has taken the lease over, or it may have: nothing may be committed any more."""


class LeaseTakenError(Exception):
    """Another process holds the lease and renews it."""

    def __init__(self, holder: "LeaseHolder | None") -> None:
        super().__init__(str(holder))
        self.holder = holder


class NoConditionalWritesError(Exception):
    """The store cannot refuse to create an object that exists."""


class StoreUnavailableError(Exception):
    """The store did not answer, or refused the request."""


class LeaseObjects(Protocol):
    """The numbered objects. All methods raise StoreUnavailableError."""

    def list_numbers(self) -> list[int]:
        """Return the numbers of all objects."""

    def read(self, number: int) -> str:
        """Return the content of an object; empty if there is none."""

    def create(self, number: int, content: str) -> bool:
        """Create an object; return False if it exists. Raises: NoConditionalWritesError."""

    def replace(self, number: int, content: str) -> None:
        """Write an object again."""

    def delete(self, number: int) -> None:
        """Delete an object."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A process that writes to a lake, for people."""

    command: str
    host: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return f"`{self.command}` on {self.host} (process {self.pid}) since {self.since:%Y-%m-%dT%H:%M:%SZ}"

    def document(self) -> dict[str, Any]:
        """Return the holder as a JSON object."""
        return asdict(self) | {"since": self.since.isoformat()}

    @classmethod
    def parse(cls, text: str) -> "LeaseHolder | None":
        """Return the holder in a text; None if there is none, as in locks of earlier versions."""
        try:
            document: Mapping[str, Any] = json.loads(text)
            since = datetime.fromisoformat(document["since"])
            return cls(str(document["command"]), str(document["host"]), int(document["pid"]), since)
        except (ValueError, KeyError, TypeError):
            return None


class SharedLease:
    """The lease as one process sees it; ``confirm`` and ``renew`` may be called from any thread.

    ``elapsed_s`` reads a clock that also advances while the machine sleeps.
    """

    def __init__(
        self,
        objects: LeaseObjects,
        holder: LeaseHolder,
        elapsed_s: Callable[[], float],
        wait: Callable[[float], object] = time.sleep,
        duration_s: float = DURATION_S,
    ) -> None:
        self._objects = objects
        self._holder = holder
        self._elapsed_s = elapsed_s
        self._wait = wait
        self._duration_s = duration_s
        self._token = uuid4().hex
        self._number = 0
        self._renewals = 0
        self._may_commit_until_s = 0.0
        self._is_lost = False
        self._lock = threading.Lock()

    def acquire(self, report_waiting: Callable[[str], None]) -> None:
        """Wait until the lease is free or has expired, and take it.

        The object is then created again, which must fail: some stores ignore the condition of a write.
        ``report_waiting`` is called with the present holder before it is waited for.

        Raises: LeaseTakenError if its holder renews it; NoConditionalWritesError; StoreUnavailableError.
        """
        while True:
            newest = max(self._objects.list_numbers(), default=0)
            if newest:
                self._wait_for_end(newest, report_waiting)
            if self._take(newest + 1):
                if self._objects.create(self._number, self._content()):
                    raise NoConditionalWritesError("an object that exists was created again")
                return

    def confirm(self) -> None:
        """Return if this process may commit now. Raises: LeaseLostError."""
        with self._lock:
            if not self._is_lost and self._elapsed_s() >= self._may_commit_until_s:
                # Suspended, or the store was away: nobody may have taken it over meanwhile.
                with suppress(StoreUnavailableError, NoConditionalWritesError):
                    self._is_lost = not self._take_again()
            if self._is_lost:
                raise LeaseLostError(self._explain_loss())
            if self._elapsed_s() >= self._may_commit_until_s:
                raise LeaseLostError(
                    "the lease of the lake could not be renewed, as its store is not available: another "
                    "process may have taken it over"
                )

    def renew(self) -> None:
        """Tell others that this process is alive, unless one of them has taken the lease over."""
        with self._lock:
            if self._is_lost or self._elapsed_s() >= self._may_commit_until_s:
                # Only `confirm` may take a lease again that has expired.
                return
            began_s = self._elapsed_s()
            try:
                if not self._is_newest_own():
                    self._is_lost = True
                    return
                self._renewals += 1
                self._objects.replace(self._number, self._content())
            except StoreUnavailableError as error:
                _log.warning("the lease of the lake could not be renewed: %s", error)
                return
            # If the store was slow, others may have taken the lease before it stored the object.
            if self._elapsed_s() < self._may_commit_until_s:
                self._may_commit_until_s = self._find_commit_deadline_s(began_s)

    def _is_newest_own(self) -> bool:
        """Return whether the newest object is this process's; one that is empty is only damaged."""
        if max(self._objects.list_numbers(), default=0) != self._number:
            # Another process took the next number, or the object is gone and another may have begun at 1.
            return False
        content = self._objects.read(self._number)
        return not content or self._token in content

    def release(self) -> None:
        """Let others take the lease at once."""
        with self._lock, suppress(StoreUnavailableError):
            if not self._is_lost and self._is_newest_own():
                self._objects.replace(self._number, self._content(is_released=True))

    def _wait_for_end(self, number: int, report_waiting: Callable[[str], None]) -> None:
        """Wait until an object has not changed for the lease's duration, or says that it was released."""
        content = self._objects.read(number)
        if _is_released(content):
            return
        holder = LeaseHolder.parse(content)
        report_waiting(str(holder or "another process"))
        since_s = read_at_s = self._elapsed_s()
        while read_at_s - since_s < self._duration_s:
            self._wait(_POLL_S)
            # Taken before the read, because this process may be suspended after it.
            read_at_s = self._elapsed_s()
            present = self._objects.read(number)
            if _is_released(present):
                return
            if present != content:
                raise LeaseTakenError(LeaseHolder.parse(present))

    def _take(self, number: int) -> bool:
        began_s = self._elapsed_s()
        # A request that was answered too late is sent again, and then finds its own object.
        content = self._content()
        if not self._objects.create(number, content) and self._objects.read(number) != content:
            return False
        numbers = sorted(self._objects.list_numbers())
        if numbers[-1] > number:
            # The number was free only because the objects of ended leases are deleted.
            return False
        self._number, self._may_commit_until_s = number, self._find_commit_deadline_s(began_s)
        for old in numbers[:-_KEPT]:
            with suppress(StoreUnavailableError):
                self._objects.delete(old)
        return True

    def _find_commit_deadline_s(self, renewed_s: float) -> float:
        """Return until when a holder that began to renew the lease at a time may commit."""
        return renewed_s + self._duration_s * 2 / 3

    def _take_again(self) -> bool:
        """Take the next number of an expired lease; return False if another process has it."""
        return self._is_newest_own() and self._take(self._number + 1)

    def _explain_loss(self) -> str:
        holder = "its store is not available"
        with suppress(StoreUnavailableError):
            newest = max(self._objects.list_numbers(), default=0)
            if not newest:
                return "the lease of the lake was removed, so that another process may write: start again"
            holder = str(LeaseHolder.parse(self._objects.read(newest)) or "unknown")
        return f"another process has taken the lake over: {holder}"

    def _content(self, *, is_released: bool = False) -> str:
        state = {"token": self._token, "renewals": self._renewals, "released": is_released}
        return json.dumps(self._holder.document() | state)


def _is_released(content: str) -> bool:
    with suppress(ValueError, AttributeError):
        return bool(json.loads(content).get("released"))
    return False


@contextmanager
def renewing(lease: SharedLease) -> Iterator[None]:
    """Renew a lease while the block runs, and release it afterwards."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(_RENEW_EVERY_S):
            lease.renew()

    thread = threading.Thread(target=run, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        lease.release()
