"""Every `fleetgauge ...` that a manifest, the composition or an image runs is a command that exists."""

import click
import pytest

from fleetgauge_core.runtime.cli import main
from tests.deployment.images import LOCKS, stages
from tests.deployment.manifests import INFRA, document, of_kind, pod_templates, raw_resources

# kafka-python reads its own schemas so when a command is imported.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


def command_lines() -> dict[str, list[str]]:
    """Where it stands to what it says."""
    found = {
        pod.owner: container["args"]
        for pod in pod_templates(of_kind(raw_resources(), "Deployment"))
        for container in pod.containers
    }
    for application in of_kind(raw_resources(), "SparkApplication"):
        spec = application["spec"]
        found[application["apiVersion"]] = spec.get("arguments") or spec["driverArgs"]
    services = document(INFRA / "compose/compose.yaml")["services"]
    found |= {f"compose {name}": one["command"] for name, one in services.items() if "build" in one}
    found |= {f"image {name}": stages()[name].words("CMD") for name in LOCKS if name != "spark"}
    return found


def understood(line: list[str]) -> dict[str, object]:
    """The command's parameters. Raises click's UsageError for an option that it does not have."""
    name, *arguments = line
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"no command {name}"
    return command.make_context(name, arguments).params


@pytest.mark.parametrize("where", command_lines())
def test_a_command_line_is_understood(where: str) -> None:
    said = understood(command_lines()[where])
    assert [str(path) for path in said.get("configs") or [said["config"]]] == ["/etc/fleetgauge/fleet.yaml"]


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(click.UsageError):
        understood(["probe", "--confg", "fleet.yaml"])


def test_a_container_listens_on_the_port_that_it_declares() -> None:
    for pod in pod_templates(of_kind(raw_resources(), "Deployment")):
        for container in pod.containers:
            told = " ".join(container["args"])
            (port,) = (port["containerPort"] for port in container["ports"])
            assert f"--listen 0.0.0.0:{port}" in told or f"--host 0.0.0.0 --port {port}" in told


def test_each_image_runs_by_itself_what_the_manifests_run() -> None:
    lines = command_lines()
    for target in ("agent", "watch", "stream", "dash"):
        assert stages()[target].words("ENTRYPOINT") == ["fleetgauge"]
        assert (
            lines[f"image {target}"] == lines[f"Deployment/fleetgauge-{target}"] == lines[f"compose {target}"]
        )
