"""The commands of `fleetgauge notify`; `commands` runs them."""

from typing import Any

import click

from fleetgauge_core.runtime.cli import Group
from fleetgauge_core.runtime.options import config_option, json_option


@click.group(cls=Group, epilog="Example: fleetgauge notify test")
def notify() -> None:
    """Send a marked test to the receivers of notifications, and say what came back."""


@notify.command(
    "test",
    epilog="""\b
Example:
  fleetgauge notify test
  fleetgauge notify test oncall --config fleet.yaml --json""",
)
@click.argument("name", required=False)
@config_option
@json_option("Print what came back from each receiver on stdout as JSON.")
def test_(**options: Any) -> None:
    """Send a marked test to all notifiers, or to the one with this name; exit 1 unless all accept it.

    The test has severity info and is resolved at once. Alertmanager gets an alert FleetgaugeTest with the
    label fleetgauge_test="true", by which a route can match it, and which ends by itself after a minute.
    PagerDuty may page somebody, unless the service's urgency follows the severity. A heartbeat counts.
    """
    from fleetgauge_operations.notify.commands import send_tests

    send_tests(**options)
