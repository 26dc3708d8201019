"""The Compose file: valid, restricted like the manifests, with existing mounts and build targets."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fleetgauge_core.fleet import load_fleet
from tests.deployment.images import read_stages
from tests.deployment.manifests import INFRA, ROOT, Document, load_document

COMPOSE = INFRA / "compose/compose.yaml"
SERVICES: dict[str, Document] = load_document(COMPOSE)["services"]
BUILT = [name for name, service in SERVICES.items() if "build" in service]
#: Limits of CPUs and memory for all services together.
CPUS, MEMORY_MB = 8, 10_000


def test_the_file_is_valid_by_the_compose_specification() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    result = subprocess.run(
        [checker, "--builtin-schema", "vendor.compose-spec", COMPOSE],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stdout + result.stderr


OWN_VOLUME = {"stream": ["lake:/lake"], "agent": ["spool:/spool"]}


@pytest.mark.parametrize("name", BUILT)
def test_a_fleetgauge_service_can_write_only_to_tmp_and_its_volume(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(place.startswith("/tmp:") and "size=" in place for place in service["tmpfs"])
    writable = [volume for volume in service["volumes"] if not volume.endswith(":ro")]
    assert writable == OWN_VOLUME.get(name, [])


def test_the_lake_of_the_fleet_file_is_mounted_in_every_process_that_reads_it() -> None:
    lake = load_fleet(COMPOSE.with_name("fleet.yaml")).lake
    for name, mode in (("stream", ""), ("watch", ":ro"), ("dash", ":ro")):
        assert f"lake:{lake}{mode}" in SERVICES[name]["volumes"]


def test_spark_can_load_the_libraries_that_it_unpacks_to_tmp() -> None:
    assert any(":exec," in place for place in SERVICES["stream"]["tmpfs"])


def test_every_service_is_limited_and_all_fit_on_a_laptop() -> None:
    limits = [service["deploy"]["resources"]["limits"] for service in SERVICES.values()]
    assert sum(float(limit["cpus"]) for limit in limits) <= CPUS
    units = {"m": 1, "g": 1024}
    assert sum(int(limit["memory"][:-1]) * units[limit["memory"][-1]] for limit in limits) <= MEMORY_MB


@pytest.mark.parametrize("name", BUILT)
def test_an_image_is_built_from_a_stage_that_exists(name: str) -> None:
    build = SERVICES[name]["build"]
    context = (COMPOSE.parent / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).is_file()
    assert build["target"] in read_stages()


def test_every_file_that_is_mounted_exists_and_every_volume_is_declared() -> None:
    declared = set(load_document(COMPOSE)["volumes"])
    for service in SERVICES.values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert (COMPOSE.parent / source).exists() if source.startswith(".") else source in declared


def test_nothing_is_published_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_the_fleet_is_the_broker_of_the_compose_file() -> None:
    fleet = load_fleet(COMPOSE.with_name("fleet.yaml"))
    assert fleet.telemetry is not None
    advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].removeprefix("PLAINTEXT://")
    assert {fleet.telemetry.bootstrap, *(cluster.bootstrap for cluster in fleet.clusters)} == {advertised}


def test_the_broker_is_the_one_that_the_local_fleet_runs() -> None:
    spec = tomllib.loads((INFRA / "fleetgauge_local/kafka-jars.toml").read_text())
    (kafka,) = (jar for jar in spec["dependencies"]["coordinates"] if ":kafka_2.13:" in jar)
    assert SERVICES["kafka"]["image"].rpartition(":")[2] == kafka.rpartition(":")[2]


def test_prometheus_scrapes_all_listening_services_and_is_grafanas_source() -> None:
    (job,) = load_document(INFRA / "prometheus/prometheus.yml")["scrape_configs"]
    listening = {
        f"{name}:{service['command'][-1].rpartition(':')[2]}"
        for name, service in SERVICES.items()
        if "--listen" in service.get("command", ())
    }
    pages = f"dash:{SERVICES['dash']['command'][-1]}"
    assert {target for group in job["static_configs"] for target in group["targets"]} == {*listening, pages}
    (source,) = load_document(INFRA / "grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
