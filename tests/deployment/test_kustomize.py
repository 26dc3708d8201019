"""The kustomizations: every file exists, every patch has a target, and all overlays render."""

from pathlib import Path

import kubernetes_validate
import pytest
from kubeflow_spark_api.models.spark_v1beta2_spark_application import SparkV1beta2SparkApplication

from fleetgauge_core.fleet import load_fleet
from tests.deployment.manifests import (
    COMPONENTS,
    KUBERNETES,
    OVERLAYS,
    Document,
    iterate_pod_templates,
    list_kustomizations,
    load_document,
    load_documents,
    load_resources,
    render,
    select_kind,
)

#: The oldest and the newest Kubernetes version for which the manifests are validated.
VERSIONS = ("1.28", "1.37")
CUSTOM = {"SparkApplication", "PodMonitor", "PrometheusRule"}


def format_path(path: Path) -> str:
    return str(path.relative_to(KUBERNETES))


def list_files(path: Path) -> list[Path]:
    """Return the files and folders to which a kustomization refers."""
    kustomization = load_document(path)
    names = [
        *kustomization.get("resources", ()),
        *kustomization.get("components", ()),
        *kustomization.get("configurations", ()),
    ]
    names += [patch["path"] for patch in kustomization.get("patches", ())]
    names += [
        name for generator in kustomization.get("configMapGenerator", ()) for name in generator["files"]
    ]
    return [path.parent / name for name in names]


def assert_valid(resources: list[Document]) -> None:
    for resource in resources:
        if resource["kind"] not in CUSTOM:
            for version in VERSIONS:
                kubernetes_validate.validate(resource, version, strict=True)
    for pod in iterate_pod_templates(resources):
        wrapped = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pod"}}
        kubernetes_validate.validate(wrapped | {"template": pod.template}, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("path", list_kustomizations(), ids=format_path)
def test_every_file_of_a_kustomization_exists(path: Path) -> None:
    missing = [str(file) for file in list_files(path) if not file.exists()]
    assert not missing


def test_every_file_belongs_to_a_kustomization() -> None:
    named = {file.resolve() for path in list_kustomizations() for file in list_files(path)}
    stray = [path for path in KUBERNETES.rglob("*.yaml") if path.resolve() not in named]
    assert [path for path in stray if path.name != "kustomization.yaml"] == []


@pytest.mark.parametrize("path", COMPONENTS, ids=format_path)
def test_every_patch_has_a_target(path: Path) -> None:
    keys = {
        (resource["apiVersion"], resource["kind"], resource["metadata"]["name"])
        for resource in load_resources()
    }
    for entry in load_document(path / "kustomization.yaml").get("patches", ()):
        patch = load_document(path / entry["path"])
        assert (patch["apiVersion"], patch["kind"], patch["metadata"]["name"]) in keys


def test_no_resource_names_a_namespace() -> None:
    metadata = [resource["metadata"] for resource in load_resources()]
    assert [entry["name"] for entry in metadata if "namespace" in entry] == []


def test_every_resource_is_valid() -> None:
    assert_valid(load_resources())


@pytest.mark.parametrize("overlay", [KUBERNETES / "base", *OVERLAYS], ids=format_path)
def test_rendered_resources_are_valid(overlay: Path, tmp_path: Path) -> None:
    resources = render(resources=(overlay,), components=(), scratch=tmp_path)
    assert_valid(resources)
    maps = {config_map["metadata"]["name"] for config_map in select_kind(resources, "ConfigMap")}
    volumes = [volume for pod in iterate_pod_templates(resources) for volume in pod.spec["volumes"]]
    mounted = {volume["configMap"]["name"] for volume in volumes if "configMap" in volume}
    assert mounted == maps, "every generated fleet.yaml is mounted under its generated name"


def test_a_fleet_file_with_a_secret_url_is_mounted_from_a_secret(tmp_path: Path) -> None:
    secret = (KUBERNETES / "components/fleet-secret",)
    resources = render(resources=(KUBERNETES / "base",), components=secret, scratch=tmp_path)
    assert_valid(resources)
    sources = {
        pod.owner: next(volume for volume in pod.spec["volumes"] if volume["name"] == "fleet")
        for pod in iterate_pod_templates(resources)
    }
    assert sources.pop("Deployment/fleetgauge-watch") == {
        "name": "fleet",
        "secret": {"secretName": "fleetgauge-watch-fleet"},
    }
    assert all("configMap" in volume for volume in sources.values())


@pytest.mark.parametrize("operator", ["kubeflow", "apache"])
def test_a_spark_operator_runs_the_stream_instead_of_the_deployment(operator: str, tmp_path: Path) -> None:
    overlay = KUBERNETES / f"overlays/spark-operator-{operator}"
    resources = render(resources=(overlay,), components=(), scratch=tmp_path)
    deployments = {resource["metadata"]["name"] for resource in select_kind(resources, "Deployment")}
    assert deployments == {"fleetgauge-agent", "fleetgauge-watch", "fleetgauge-observe", "fleetgauge-dash"}
    assert len(select_kind(resources, "SparkApplication")) == 1
    accounts = select_kind(resources, "ServiceAccount")
    trusted = [account["metadata"]["name"] for account in accounts if account["automountServiceAccountToken"]]
    assert trusted == ["fleetgauge-stream"], "only the driver calls the API server"


def test_the_application_is_valid_for_kubeflows_operator() -> None:
    application = load_document(KUBERNETES / "overlays/spark-operator-kubeflow/application.yaml")
    parsed = SparkV1beta2SparkApplication.from_dict(application)
    assert parsed is not None
    # Fields that the operator does not know would be missing here.
    assert parsed.to_dict() == application


@pytest.mark.parametrize("path", sorted(KUBERNETES.rglob("fleet.yaml")), ids=format_path)
def test_every_fleet_file_is_valid(path: Path) -> None:
    assert load_fleet(path).telemetry is not None


def test_the_shards_are_the_whole_fleet_with_a_vantage_each() -> None:
    sharded = KUBERNETES / "overlays/sharded"
    shards = [load_fleet(sharded / name / "fleet.yaml") for name in ("eu", "us")]
    assert [cluster for shard in shards for cluster in shard.clusters] == list(
        load_fleet(sharded / "center/fleet.yaml").clusters
    )
    assert len({shard.vantage for shard in shards}) == len(shards)


def test_no_manifest_contains_a_secret() -> None:
    documents = [document for path in KUBERNETES.rglob("*.yaml") for document in load_documents(path)]
    assert [
        document
        for document in documents
        if document.get("kind") == "Secret" or "secretGenerator" in document
    ] == []
