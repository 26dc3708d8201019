"""Packaging and deployment: extras, programs, images, services, Kubernetes resources."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.deployment.images import DOCKERFILE, LOCKS, read_stages
from tests.deployment.manifests import (
    COMPONENTS,
    INFRA,
    KUBERNETES,
    OVERLAYS,
    ROOT,
    iterate_pod_templates,
    load_document,
    load_resources,
)


def collect() -> Iterator[str]:
    yield from _project()
    yield from _images()
    yield from _compose()
    yield from _kubernetes()
    yield from _files()


def _project() -> Iterator[str]:
    """Yield extras, programs and entry points without the functions behind them, which may change."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield f"package: {project['name']}"
    yield f"package: python {project['requires-python']}"
    yield from (f"package: extra {name}" for name in project["optional-dependencies"])
    yield from (f"package: program {name}" for name in project["scripts"])
    for group, points in project["entry-points"].items():
        yield from (f"package: {group} {name}" for name in points)


def _images() -> Iterator[str]:
    for target in LOCKS:
        stage = read_stages()[target]
        yield f"image {target}: user {stage.instructions['USER']}"
        yield f"image {target}: folder {stage.instructions['WORKDIR']}"
        for instruction in ("ENTRYPOINT", "CMD"):
            yield f"image {target}: {instruction.lower()} {' '.join(stage.parse_arguments(instruction))}"


def _compose() -> Iterator[str]:
    compose_file = load_document(INFRA / "compose/compose.yaml")
    yield f"compose: project {compose_file['name']}"
    yield from (f"compose: volume {name}" for name in compose_file["volumes"])
    for name, service in compose_file["services"].items():
        yield f"compose {name}: service"
        yield from (f"compose {name}: port {port}" for port in service.get("ports", ()))
        if "build" in service:
            yield f"compose {name}: image {service['image'].partition(':')[0]}"
            yield f"compose {name}: target {service['build']['target']}"
            yield f"compose {name}: command {' '.join(service['command'])}"


def _kubernetes() -> Iterator[str]:
    yield from (f"kubernetes: {path.relative_to(KUBERNETES)}" for path in (*OVERLAYS, *COMPONENTS))
    resources = load_resources()
    for resource in resources:
        owner = f"kubernetes {resource['kind']}/{resource['metadata']['name']}"
        yield f"{owner}: resource"
        yield from _labels(owner, resource["metadata"].get("labels", {}))
        yield from _ports_of_service(owner, resource)
    for pod in iterate_pod_templates(resources):
        yield from _labels(f"kubernetes {pod.owner} pods", pod.labels)
        for container in pod.containers:
            yield from _container(f"kubernetes {pod.owner}", container)


def _labels(owner: str, labels: dict[str, str]) -> Iterator[str]:
    yield from (f"{owner}: label {name}={value}" for name, value in labels.items())


def _ports_of_service(owner: str, resource: dict[str, Any]) -> Iterator[str]:
    if resource["kind"] == "Service":
        yield from (f"{owner}: port {port['name']} {port['port']}" for port in resource["spec"]["ports"])


def _container(owner: str, container: dict[str, Any]) -> Iterator[str]:
    """Yield a container's name, image without its tag, arguments, ports and mounts."""
    name = f"{owner}: container {container['name']}"
    yield name
    if "image" in container:
        yield f"{name}: image {container['image'].rpartition(':')[0]}"
    if "args" in container:
        yield f"{name}: arguments {' '.join(container['args'])}"
    yield from (f"{name}: port {port['name']} {port['containerPort']}" for port in container.get("ports", ()))
    yield from (f"{name}: mounts {mount['mountPath']}" for mount in container.get("volumeMounts", ()))


def _files() -> Iterator[str]:
    """Yield files that installations refer to by their path in the repository."""
    folders = (INFRA / "compose", INFRA / "grafana", INFRA / "kubernetes", INFRA / "prometheus")
    for path in (DOCKERFILE, *(path for folder in folders for path in folder.rglob("*"))):
        if path.is_file():
            yield f"file: {_shown(path)}"


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
