"""Loads the deployment's manifests, unpatched and as kustomize renders them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
KUBERNETES = INFRA / "kubernetes"
OVERLAYS = sorted(path.parent for path in KUBERNETES.glob("overlays/*/kustomization.yaml"))
COMPONENTS = sorted(path.parent for path in KUBERNETES.glob("components/*/kustomization.yaml"))

Document = dict[str, Any]

#: Paths in the spec of a resource to its pod templates.
_TEMPLATES = {
    "Deployment": (("template",),),
    "SparkApplication": (
        ("driver", "template"),
        ("executor", "template"),
        ("driverSpec", "podTemplateSpec"),
        ("executorSpec", "podTemplateSpec"),
    ),
}


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template and the resource that contains it."""

    owner: str
    template: Document

    @property
    def spec(self) -> Document:
        spec: Document = self.template["spec"]
        return spec

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.template["metadata"]["labels"]
        return labels

    @property
    def containers(self) -> list[Document]:
        return [*self.spec["containers"], *self.spec.get("initContainers", ())]


def load_documents(path: Path) -> list[Document]:
    """Return the documents of a YAML file that are not empty."""
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def load_document(path: Path) -> Document:
    """Return the only document of a YAML file."""
    (document,) = load_documents(path)
    return document


def list_kustomizations() -> list[Path]:
    """Return the paths of all kustomizations."""
    return sorted(KUBERNETES.rglob("kustomization.yaml"))


def load_resources() -> list[Document]:
    """Return every resource to which a kustomization refers, unpatched."""
    files = [
        path.parent / name
        for path in list_kustomizations()
        for name in load_document(path).get("resources", ())
        if name.endswith(".yaml")
    ]
    return [resource for file in files for resource in load_documents(file)]


def render(*, resources: tuple[Path, ...], components: tuple[Path, ...], scratch: Path) -> list[Document]:
    """Return what kustomize renders; skip the test where kubectl, which contains kustomize, is missing."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is missing: it renders the overlays")
    kustomization = {
        "resources": [os.path.relpath(path, scratch) for path in resources],
        "components": [os.path.relpath(path, scratch) for path in components],
    }
    (scratch / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    result = subprocess.run([kubectl, "kustomize", str(scratch)], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert not result.stderr, result.stderr
    return [resource for resource in yaml.safe_load_all(result.stdout) if resource]


def iterate_pod_templates(resources: list[Document]) -> Iterator[PodTemplate]:
    """Yield the pod templates of resources."""
    for resource in resources:
        owner = f"{resource['kind']}/{resource['metadata']['name']}"
        for path in _TEMPLATES.get(resource["kind"], ()):
            template: Any = resource["spec"]
            for key in path:
                template = template.get(key) if template else None
            if template:
                yield PodTemplate(owner, template)


def select_kind(resources: list[Document], kind: str) -> list[Document]:
    """Return the resources of a kind."""
    return [resource for resource in resources if resource["kind"] == kind]
