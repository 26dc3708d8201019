"""What the lake adds to findings: planned maintenance, remaining error budgets and recent actions on brokers.

A watch without the libraries that read tables, or whose lake is unavailable, notifies of every finding and
adds no such lines.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.weeks import WeekCalendar
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.corrections.planned_maintenance import MaintenancePlan, build_maintenance_plan

_log = logging.getLogger("fleetgauge.watch")

_READ_INTERVAL_S = 60.0
#: How long ``start`` waits for the first read.
_FIRST_READ_TIMEOUT_S = 10.0
#: Older actions explain little about a finding of now.
_RECENT = timedelta(days=1)
_ACTIONS_SHOWN = 3
_EFFECTS = {
    "plan": "planned maintenance is unknown, so findings during maintenance are notified",
    "budgets": "remaining error budgets are unknown and left out of notifications",
    "cases": "recent actions on brokers are unknown and left out of notifications",
}


class LakeContext:
    """Reads the lake every minute from ``start`` to ``stop``; the last result is kept until the next."""

    def __init__(self, fleet: Fleet, clock: Callable[[], datetime]) -> None:
        self._fleet = fleet
        self._clock = clock
        self._corrections: Sequence[Mapping[str, Any]] = ()
        self._budgets: Mapping[str, Mapping[str, Any]] = {}
        self._cases: Sequence[ActionCase] = ()
        self._has_read = Event()
        self._stopping = Event()
        self._wake = Event()
        self._thread = Thread(target=self._run, name="lake-context", daemon=True)
        self.plan: MaintenancePlan = build_maintenance_plan((), fleet)

    def start(self) -> None:
        """Begin to read; return after the first read, or after 10 s."""
        self._thread.start()
        self._has_read.wait(_FIRST_READ_TIMEOUT_S)

    def stop(self) -> None:
        """Stop reading, without waiting for a read that hangs."""
        self._stopping.set()
        self._wake.set()

    def adopt_fleet(self, fleet: Fleet) -> None:
        """Use another fleet from now on; what was read last is kept until its lake has been read."""
        self._fleet = fleet
        self.plan = build_maintenance_plan(self._corrections, fleet)
        self._wake.set()

    def describe_cluster(self, cluster_id: str) -> tuple[str, ...]:
        """Return lines about a cluster's remaining budgets and its recent actions, the latest action last."""
        since = self._clock() - _RECENT
        cases = [case for case in self._cases if case.cluster_id == cluster_id and case.began > since]
        return (
            *_describe_budgets(self._budgets.get(cluster_id, {})),
            *map(_describe_case, cases[-_ACTIONS_SHOWN:]),
        )

    def _run(self) -> None:
        try:
            # The container image of the watch has no libraries that read tables; detection needs none.
            from fleetgauge_core.lake.table_store import TableStoreError
            from fleetgauge_operations.watch import lake_tables
        except ModuleNotFoundError as error:
            _log.warning("%s is not installed: %s", error.name, "; ".join(_EFFECTS.values()))
            self._has_read.set()
            return
        last_errors = dict[str, str]()

        def read_plan() -> None:
            self._corrections = lake_tables.read_corrections(self._fleet.lake)
            self.plan = build_maintenance_plan(self._corrections, self._fleet)

        def read_budgets() -> None:
            weeks = WeekCalendar(self._fleet.week.zone, self._fleet.week.start)
            self._budgets = lake_tables.read_budgets(self._fleet.lake, weeks.week_at(self._clock()).week)

        def read_cases() -> None:
            self._cases = lake_tables.read_cases(self._fleet.lake)

        while True:
            for name, read in (("plan", read_plan), ("budgets", read_budgets), ("cases", read_cases)):
                message = ""
                try:
                    read()
                except TableStoreError as error:
                    message = str(error)
                except Exception as error:
                    # Whatever a lake holds, it must not end the watch: people are notified without it.
                    message = f"unexpected {type(error).__name__}: {error}"
                # Logged once, until the error changes.
                if message and message != last_errors.get(name):
                    _log.warning("%s: %s", _EFFECTS[name], message)
                last_errors[name] = message
            self._has_read.set()
            self._wake.wait(_READ_INTERVAL_S)
            self._wake.clear()
            if self._stopping.is_set():
                return


def _describe_budgets(week: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each error budget that the row of the week contains."""
    left, total = week.get("latency_budget_left_minutes"), week.get("latency_budget_minutes")
    if left is not None and total is not None:
        yield _describe_budget("latency", left, total)
    spent, total = week.get("availability_spent_minutes"), week.get("availability_budget_minutes")
    if spent is not None and total is not None:
        yield _describe_budget("availability", total - spent, total)


def _describe_budget(name: str, left: float, total: float) -> str:
    return f"{left:.1f} of {total:.1f} minutes of this week's {name} error budget remain"


def _describe_case(case: ActionCase) -> str:
    return (
        f"{case.kind} of broker {case.broker_id} by {case.author}, {case.began:%Y-%m-%d %H:%M} UTC: "
        f"{case.outcome}"
    )
