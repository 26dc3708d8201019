"""The deployment's files as data: manifests as they stand and as kustomize renders them."""

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

#: Where a resource keeps the templates of its pods.
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
    """A pod's template and the resource that it stands in."""

    owner: str
    template: Document

    @property
    def spec(self) -> Document:
        found: Document = self.template["spec"]
        return found

    @property
    def labels(self) -> dict[str, str]:
        found: dict[str, str] = self.template["metadata"]["labels"]
        return found

    @property
    def containers(self) -> list[Document]:
        return [*self.spec["containers"], *self.spec.get("initContainers", ())]


def documents(path: Path) -> list[Document]:
    return [found for found in yaml.safe_load_all(path.read_text(encoding="utf-8")) if found]


def document(path: Path) -> Document:
    (only,) = documents(path)
    return only


def kustomizations() -> list[Path]:
    return sorted(KUBERNETES.rglob("kustomization.yaml"))


def raw_resources() -> list[Document]:
    """Every resource that some kustomization names, unpatched."""
    files = [
        path.parent / name
        for path in kustomizations()
        for name in document(path).get("resources", ())
        if name.endswith(".yaml")
    ]
    return [found for file in files for found in documents(file)]


def rendered(*, resources: tuple[Path, ...], components: tuple[Path, ...], scratch: Path) -> list[Document]:
    """What kustomize makes of them. Skips the test where kubectl, which carries kustomize, is missing."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is missing: it renders the overlays")
    wanted = {
        "resources": [os.path.relpath(path, scratch) for path in resources],
        "components": [os.path.relpath(path, scratch) for path in components],
    }
    (scratch / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    done = subprocess.run([kubectl, "kustomize", str(scratch)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def pod_templates(resources: list[Document]) -> Iterator[PodTemplate]:
    for resource in resources:
        owner = f"{resource['kind']}/{resource['metadata']['name']}"
        for path in _TEMPLATES.get(resource["kind"], ()):
            template: Any = resource["spec"]
            for key in path:
                template = template.get(key) if template else None
            if template:
                yield PodTemplate(owner, template)


def of_kind(resources: list[Document], kind: str) -> list[Document]:
    return [resource for resource in resources if resource["kind"] == kind]
