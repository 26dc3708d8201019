"""A local fleet with all services of Fleetgauge as processes, and a receiver of their pages."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import urllib3
import yaml

from fleetgauge_core.contract import ProbePulse
from fleetgauge_core.detection import BURN_CONDITIONS
from fleetgauge_core.fleet import Fleet, Telemetry, load_fleet
from fleetgauge_core.kafka import KafkaUnavailableError, ensure_telemetry_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import HOST, TOPOLOGIES
from fleetgauge_local.ports import find_free_ports
from fleetgauge_local.traffic import build_traffic_service
from tests.chaos._streaming import Command, log_progress
from tests.exposition import samples
from tests.receiver import Post, Receiver
from tests.topic_values import read_values

ALL_SERVICES = ("probe", "watch", "stream", "dash")


@dataclass(frozen=True)
class Scene:
    """A fleet, the addresses of its services' metrics, and the receiver of its pages."""

    config: Path
    local: LocalFleet
    fleet: Fleet
    telemetry: Telemetry
    ports: Mapping[str, int]
    services: Mapping[str, Command]
    pager: Receiver

    @property
    def lake(self) -> Path:
        return Path(self.fleet.lake)

    @property
    def pages(self) -> list[Post]:
        """What was sent, without error budgets: they burn for as long as their windows last."""
        return [post for post in list(self.pager.posts) if post.body["kind"] not in BURN_CONDITIONS]

    def read_metric(self, service: str, name: str) -> dict[tuple[str, ...], float]:
        try:
            response = urllib3.request("GET", f"http://{HOST}:{self.ports[service]}/metrics", timeout=5)
        except urllib3.exceptions.HTTPError:
            return {}
        return samples(response.data.decode(), name)

    def read_pulses(self) -> list[ProbePulse]:
        try:
            values = read_values(self.telemetry.access, self.telemetry.topics.probe_pulse.name)
        except KafkaUnavailableError:
            return []
        return [ProbePulse.decode(value) for value in values]


@contextmanager
def running_scene(
    folder: Path,
    regions: bool = False,
    command: type[Command] = Command,
    services: Sequence[str] = ALL_SERVICES,
) -> Iterator[Scene]:
    """Run a fleet and services, as the demo does, in a folder; the lake is ``lake`` in it."""
    topology = TOPOLOGIES["regions" if regions else "clusters"]
    with ExitStack() as stack:
        local = stack.enter_context(
            LocalFleet(folder / "fleet", topology.clusters, mirrors=topology.mirrors, progress=log_progress)
        )
        pager = stack.enter_context(Receiver().listening())
        config = folder / "fleet.yaml"
        changed = {"notifiers": [{"kind": "webhook", "url": pager.url}], "lake": str(folder / "lake")}
        config.write_text(yaml.safe_dump(yaml.safe_load(local.fleet_file.read_text()) | changed))
        fleet = load_fleet(config)
        assert fleet.telemetry is not None
        ensure_telemetry_topics(fleet.telemetry)
        commands = {name: (name,) for name in services}
        if regions:
            traffic = build_traffic_service(config)
            program = (sys.executable, "-m", traffic.module)
            stack.enter_context(Command(folder / "traffic.log", *traffic.arguments, program=program))
            commands["recover"] = ("recover", "run", "--execute")
        ports = dict(zip(commands, find_free_ports(len(commands), Random()), strict=True))
        processes = {
            name: stack.enter_context(
                command(
                    folder / f"{name}.log",
                    *arguments,
                    *("--config", str(config)),
                    *(
                        ("--port", str(ports[name]))
                        if name == "dash"
                        else ("--listen", f"{HOST}:{ports[name]}")
                    ),
                )
            )
            for name, arguments in commands.items()
        }
        try:
            yield Scene(config, local, fleet, fleet.telemetry, ports, processes, pager)
        except TimeoutError:
            for name, service in processes.items():
                log_progress(f"{name}: {service.output[-3000:]}")
            raise
