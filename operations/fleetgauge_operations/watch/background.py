"""What the lake knows of a cluster: what is planned, left of its budgets, and was done to its brokers.

A watch that has no reader of tables, or whose lake is away, tells all and says less of it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any

from fleetgauge_operations.mitigation.case import Case
from fleetgauge_operations.watch.maintenance import Plan, planned
from fleetgauge_pipelines.slo.weeks import WeekCalendar
from fleetgauge_probes.fleet import Fleet

_log = logging.getLogger("fleetgauge.watch")

_READ_EVERY_S = 60.0
#: For a lake that answers at all.
_FIRST_READ_S = 10.0
#: What was done before that says little about what is found now.
_RECENT = timedelta(days=1)
_SHOWN = 3


class Background:
    """Read every minute from ``start`` to ``stop``; what the lake told last holds on."""

    def __init__(self, fleet: Fleet, clock: Callable[[], datetime]) -> None:
        self._fleet = fleet
        self._clock = clock
        self._weeks = WeekCalendar(fleet.week.zone, fleet.week.start)
        self._budgets: Mapping[str, Mapping[str, Any]] = {}
        self._cases: Sequence[Case] = ()
        self._trouble: dict[str, str] = {}
        self._read = Event()
        self._stopping = Event()
        self._thread = Thread(target=self._go_on, name="background", daemon=True)
        self.plan: Plan = planned((), fleet)

    def start(self) -> None:
        """Returns with what the lake has, unless that takes long."""
        self._thread.start()
        self._read.wait(_FIRST_READ_S)

    def stop(self) -> None:
        # A lake that hangs must not keep the watch.
        self._stopping.set()

    def of(self, cluster_id: str) -> tuple[str, ...]:
        """A line for each thing that is known of it, the latest actions last."""
        since = self._clock() - _RECENT
        cases = [one for one in self._cases if one.cluster_id == cluster_id and one.began > since]
        return (*_left(self._budgets.get(cluster_id, {})), *map(_done, cases[-_SHOWN:]))

    def _go_on(self) -> None:
        while True:
            self._attempt("maintenance is not known, so all is told", self._read_plan)
            self._attempt("what is left of budgets is not known", self._read_budgets)
            self._attempt("what was done to brokers is not known", self._read_cases)
            self._read.set()
            if self._stopping.wait(_READ_EVERY_S):
                return

    def _attempt(self, unknown: str, read: Callable[[], None]) -> None:
        """What is wrong is said once, until it is another."""
        why = _why_not(read)
        if why and why != self._trouble.get(unknown):
            _log.warning("%s: %s", unknown, why)
        self._trouble[unknown] = why

    def _read_plan(self) -> None:
        from fleetgauge_operations.watch import tables

        self.plan = planned(tables.corrections(self._fleet.lake), self._fleet)

    def _read_budgets(self) -> None:
        from fleetgauge_operations.watch import tables

        self._budgets = tables.budgets(self._fleet.lake, self._weeks.of(self._clock()).week)

    def _read_cases(self) -> None:
        from fleetgauge_operations.watch import tables

        self._cases = tables.cases(self._fleet.lake, self._clock())


def _why_not(read: Callable[[], None]) -> str:
    """Nothing where it was read."""
    try:
        # The watch's image has no reader of tables: it needs none for its pulses.
        from fleetgauge_pipelines.lakes.kept import KeptTableError
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed"
    try:
        read()
    except KeptTableError as error:
        return str(error)
    return ""


def _left(week: Mapping[str, Any]) -> Iterator[str]:
    """Of this week's budgets, as far as the tables have them."""
    left, of = week.get("latency_budget_left_minutes"), week.get("latency_budget_minutes")
    if left is not None and of is not None:
        yield _of_week("latency", left, of)
    spent, of = week.get("availability_spent_minutes"), week.get("availability_budget_minutes")
    if spent is not None and of is not None:
        yield _of_week("availability", of - spent, of)


def _of_week(budget: str, left: float, of: float) -> str:
    return f"{left:.1f} of {of:.1f} minutes of this week's {budget} budget are left"


def _done(case: Case) -> str:
    return (
        f"{case.action} of broker {case.broker_id} by {case.author}, {case.began:%Y-%m-%d %H:%M} UTC: "
        f"{case.outcome}"
    )
