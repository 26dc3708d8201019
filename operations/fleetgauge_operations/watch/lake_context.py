"""What the lake knows of a cluster: what is planned, left of its budgets, and was done to its brokers.

A watch that has no reader of tables, or whose lake is away, tells all and says less of it.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_operations.corrections.planned_maintenance import Plan, planned
from fleetgauge_operations.mitigation.case import Case

_log = logging.getLogger("fleetgauge.watch")

_READ_EVERY_S = 60.0
#: For a lake that answers at all.
_FIRST_READ_S = 10.0
#: What was done before that says little about what is found now.
_RECENT = timedelta(days=1)
_SHOWN = 3
_UNKNOWN = {
    "plan": "maintenance is not known, so all is told",
    "budgets": "what is left of budgets is not known",
    "cases": "what was done to brokers is not known",
}


class LakeContext:
    """Read every minute from ``start`` to ``stop``; what the lake told last holds on."""

    def __init__(self, fleet: Fleet, clock: Callable[[], datetime]) -> None:
        self._fleet = fleet
        self._clock = clock
        self._weeks = WeekCalendar(fleet.week.zone, fleet.week.start)
        self._budgets: Mapping[str, Mapping[str, Any]] = {}
        self._cases: Sequence[Case] = ()
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
        try:
            # The watch's image has no reader of tables: it needs none for its pulses.
            from fleetgauge_core.lake.table_store import TableStoreError
            from fleetgauge_operations.watch import lake_tables
        except ModuleNotFoundError as error:
            _log.warning("%s is not installed: %s", error.name, "; ".join(_UNKNOWN.values()))
            self._read.set()
            return
        lake, trouble = self._fleet.lake, dict[str, str]()

        def read_plan() -> None:
            self.plan = planned(lake_tables.corrections(lake), self._fleet)

        def read_budgets() -> None:
            self._budgets = lake_tables.budgets(lake, self._weeks.week_at(self._clock()).week)

        def read_cases() -> None:
            self._cases = lake_tables.cases(lake, self._clock())

        while True:
            for what, read in (("plan", read_plan), ("budgets", read_budgets), ("cases", read_cases)):
                try:
                    read()
                    why = ""
                except TableStoreError as error:
                    why = str(error)
                # Said once, until it is another.
                if why and why != trouble.get(what):
                    _log.warning("%s: %s", _UNKNOWN[what], why)
                trouble[what] = why
            self._read.set()
            if self._stopping.wait(_READ_EVERY_S):
                return


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
