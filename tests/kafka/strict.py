"""Clusters with an authorizer on which clients are User:CLIENT, and the rights that it is given."""

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AclOperation

from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.fleet_folder import FleetFolder, FleetPlan, read_json
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_probes.cli import probe
from tests.kafka.acls import AclRight, add_right, remove_all_rights, remove_right
from tests.kafka.broker_classes import add_class

CLIENT = "User:CLIENT"
_BEHAVIOR = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:INTERNAL;User:CONTROLLER",
}
_OPERATIONS = {operation.name.replace("_", "").lower(): operation for operation in AclOperation}


@contextmanager
def adding_authorizer(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[None]:
    """Give fleets created within the block an authorizer, with further settings; clients have no permission.

    The listener between brokers is for super users.
    """
    with pytest.MonkeyPatch.context() as patch:
        builder = add_class("ListenerPrincipalBuilder", folder, patch)
        for key, value in (_BEHAVIOR | {"principal.builder.class": builder} | dict(settings or {})).items():
            patch.setitem(properties._BEHAVIOR, key, value)
        yield


@contextmanager
def run_strict_fleet(folder: Path, clusters: tuple[ClusterSpec, ...]) -> Iterator[LocalFleet]:
    """Run clusters on which clients have no permission; the listener between brokers is for super users."""
    with adding_authorizer(folder / "classes"), LocalFleet(folder / "fleet", clusters) as fleet:
        yield fleet


def find_broker_listener(local: LocalFleet, cluster: str) -> str:
    """Return the address of the inter-broker listener, whose clients are super users."""
    plan = read_json(FleetFolder(local.fleet_file.parent).plan, FleetPlan)
    assert plan is not None
    return f"127.0.0.1:{plan.layout.list_placements(cluster)[0].internal_port}"


def parse_rights(command: str) -> Iterator[AclRight]:
    """Yield the rights that a kafka-acls.sh command line grants."""
    words = shlex.split(command)
    options = [(word, after) for word, after in pairwise(words) if word.startswith("--")]
    values = dict(options)
    for operation in (after for word, after in options if word == "--operation"):
        yield AclRight(
            _OPERATIONS[operation.lower()],
            topic=values.get("--topic"),
            group=values.get("--group"),
            is_prefix=values.get("--resource-pattern-type") == "prefixed",
        )


def print_rights(config: Path, *arguments: str) -> list[tuple[str, AclRight]]:
    """Return each right that `fleetgauge probe acls` prints, with its cluster."""
    command = ["acls", "--config", str(config), "--principal", CLIENT, *arguments]
    lines = CliRunner().invoke(probe, command, catch_exceptions=False).stdout.splitlines()
    output = CliRunner().invoke(probe, [*command, "--json"], catch_exceptions=False).stdout
    grants = json.loads(output)["grants"]
    return [
        (grant["cluster"], right)
        for grant, line in zip(grants, lines, strict=True)
        for right in parse_rights(line)
    ]


def grant(local: LocalFleet, cluster: str, right: AclRight) -> None:
    """Give the client a right."""
    add_right(find_broker_listener(local, cluster), right, CLIENT)


def revoke(local: LocalFleet, cluster: str, right: AclRight) -> None:
    """Take a right away from the client."""
    remove_right(find_broker_listener(local, cluster), right, CLIENT)


def grant_only(local: LocalFleet, role: str, clusters: tuple[str, ...]) -> list[tuple[str, AclRight]]:
    """Give the client exactly the rights that are printed for a role, and return them with their clusters."""
    for cluster in clusters:
        remove_all_rights(find_broker_listener(local, cluster), CLIENT)
    rights = print_rights(local.fleet_file, "--for", role)
    for cluster, right in rights:
        grant(local, cluster, right)
    return rights
