"""Every `fleetgauge` command line of a manifest, the Compose file or an image is valid."""

import click
import pytest

from fleetgauge_core.runtime.cli import main
from tests.deployment.images import LOCKS, read_stages
from tests.deployment.manifests import (
    INFRA,
    iterate_pod_templates,
    load_document,
    load_resources,
    select_kind,
)

# kafka-python calls deprecated functions when a command is imported.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


def collect_command_lines() -> dict[str, list[str]]:
    """Return the command lines by their place."""
    lines = {
        pod.owner: container["args"]
        for pod in iterate_pod_templates(select_kind(load_resources(), "Deployment"))
        for container in pod.containers
    }
    for application in select_kind(load_resources(), "SparkApplication"):
        spec = application["spec"]
        lines[application["apiVersion"]] = spec.get("arguments") or spec["driverArgs"]
    services = load_document(INFRA / "compose/compose.yaml")["services"]
    lines |= {
        f"compose {name}": service["command"] for name, service in services.items() if "build" in service
    }
    lines |= {
        f"image {name}": read_stages()[name].parse_arguments("CMD") for name in LOCKS if name != "spark"
    }
    return lines


def parse_command_line(line: list[str]) -> dict[str, object]:
    """Return the command's parameters. Raises: click.UsageError for an unknown option."""
    name, *arguments = line
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"no command {name}"
    return command.make_context(name, arguments).params


@pytest.mark.parametrize("where", collect_command_lines())
def test_a_command_line_is_valid(where: str) -> None:
    parameters = parse_command_line(collect_command_lines()[where])
    assert [str(path) for path in parameters.get("configs") or [parameters["config"]]] == [
        "/etc/fleetgauge/fleet.yaml"
    ]


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(click.UsageError):
        parse_command_line(["probe", "--confg", "fleet.yaml"])


def test_a_container_listens_on_the_port_that_it_declares() -> None:
    for pod in iterate_pod_templates(select_kind(load_resources(), "Deployment")):
        for container in pod.containers:
            arguments = " ".join(container["args"])
            (port,) = (port["containerPort"] for port in container["ports"])
            assert f"--listen 0.0.0.0:{port}" in arguments or f"--host 0.0.0.0 --port {port}" in arguments


def test_an_image_runs_the_command_of_the_manifests_by_default() -> None:
    lines = collect_command_lines()
    for target in ("agent", "watch", "stream", "dash"):
        assert read_stages()[target].parse_arguments("ENTRYPOINT") == ["fleetgauge"]
        assert (
            lines[f"image {target}"] == lines[f"Deployment/fleetgauge-{target}"] == lines[f"compose {target}"]
        )
