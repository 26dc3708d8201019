"""What is asked and of which lake: the options that the commands share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import click

from fleetgauge_core.fleet import (
    BurnAlerts,
    Fleet,
    FleetFileError,
    Week,
    load,
)
from fleetgauge_core.runtime.cli import InputError
from fleetgauge_dashboards.reader import LakeError

#: click's decorators take and return functions of any shape.
Command = TypeVar("Command", bound=Callable[..., None])

_AGENT_LATE_MS = Fleet.model_fields["agent_late_ms"].default


@dataclass(frozen=True, slots=True)
class Asked:
    """The lake to read, and the fleet file beside it if there is one."""

    lake: str
    fleet: Fleet | None

    @property
    def week(self) -> Week:
        return self.fleet.week if self.fleet else Week()

    @property
    def burn_alerts(self) -> BurnAlerts:
        return self.fleet.burn_alerts if self.fleet else BurnAlerts()

    @property
    def agent_late_us(self) -> int:
        return round(1000 * (self.fleet.agent_late_ms if self.fleet else _AGENT_LATE_MS))

    @property
    def name(self) -> str:
        if self.fleet is None:
            return self.lake
        return f"{self.fleet.name} (SIMULATED)" if self.fleet.simulated else self.fleet.name


def lake_options(command: Command) -> Command:
    """--config and --lake."""
    config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="fleet.yaml; gives the lake and the zone of its weeks.  [default: fleet.yaml, without --lake]",
    )
    lake = click.option("--lake", help="The lake, if another: a folder, or an object store's URI.")
    return config(lake(command))


def form_options(command: Command) -> Command:
    """--json and --csv; ``form`` is None for a person."""
    as_json = click.option("--json", "form", flag_value="json", help="Print the answer as one JSON object.")
    as_csv = click.option("--csv", "form", flag_value="csv", help="Print the answer's rows as CSV.")
    return as_json(as_csv(command))


def week_argument(required: bool) -> Callable[[Command], Command]:
    metavar = "WEEK" if required else "[WEEK]"
    return click.argument("week", type=click.DateTime(["%Y-%m-%d"]), metavar=metavar, required=required)


def asked(lake: str | None, config: Path | None) -> Asked:
    if lake is not None and config is None:
        return Asked(lake, None)
    try:
        fleet = load(config or Path("fleet.yaml"))
    except FleetFileError as error:
        raise InputError(f"{error}, or a lake with --lake" if config is None else str(error)) from error
    return Asked(lake or fleet.lake, fleet)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """A table that cannot be read is a line, not a traceback."""
    try:
        yield
    except LakeError as error:
        raise InputError(str(error)) from error


def held_week(weeks: Sequence[date], day: datetime | None, where: str) -> date:
    """The week that holds a day, or the newest of them."""
    if not weeks:
        raise no_week(where)
    if day is None:
        return max(weeks)
    for week in weeks:
        if week <= day.date() < week + timedelta(days=7):
            return week
    raise InputError(f"{where}: no week {day.date()}; there are {min(weeks)} to {max(weeks)}")


def no_week(where: str) -> InputError:
    """Nothing has been computed there."""
    return InputError(
        f"{where}: no week is there yet: the first comes with the first batch of stream or backfill"
    )
