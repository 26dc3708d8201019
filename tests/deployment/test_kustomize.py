"""The kustomizations hold together: every file is there, every patch has a target, everything renders."""

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
    document,
    documents,
    kustomizations,
    of_kind,
    pod_templates,
    raw_resources,
    rendered,
)

#: The oldest and the newest Kubernetes that the manifests are held to.
VERSIONS = ("1.28", "1.37")
CUSTOM = {"SparkApplication", "PodMonitor", "PrometheusRule"}


def short(path: Path) -> str:
    return str(path.relative_to(KUBERNETES))


def files_of(path: Path) -> list[Path]:
    """The files and folders that a kustomization names."""
    told = document(path)
    names = [*told.get("resources", ()), *told.get("components", ()), *told.get("configurations", ())]
    names += [patch["path"] for patch in told.get("patches", ())]
    names += [name for generator in told.get("configMapGenerator", ()) for name in generator["files"]]
    return [path.parent / name for name in names]


def assert_valid(resources: list[Document]) -> None:
    for resource in resources:
        if resource["kind"] not in CUSTOM:
            for version in VERSIONS:
                kubernetes_validate.validate(resource, version, strict=True)
    for pod in pod_templates(resources):
        wrapped = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pod"}}
        kubernetes_validate.validate(wrapped | {"template": pod.template}, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("path", kustomizations(), ids=short)
def test_every_file_that_a_kustomization_names_is_there(path: Path) -> None:
    missing = [str(found) for found in files_of(path) if not found.exists()]
    assert not missing


def test_every_file_is_named_by_a_kustomization() -> None:
    named = {file.resolve() for path in kustomizations() for file in files_of(path)}
    stray = [path for path in KUBERNETES.rglob("*.yaml") if path.resolve() not in named]
    assert [path for path in stray if path.name != "kustomization.yaml"] == []


@pytest.mark.parametrize("path", COMPONENTS, ids=short)
def test_every_patch_has_a_target(path: Path) -> None:
    there = {(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in raw_resources()}
    for told in document(path / "kustomization.yaml").get("patches", ()):
        patch = document(path / told["path"])
        assert (patch["apiVersion"], patch["kind"], patch["metadata"]["name"]) in there


def test_no_resource_names_a_namespace() -> None:
    assert [one["metadata"]["name"] for one in raw_resources() if "namespace" in one["metadata"]] == []


def test_every_resource_is_what_kubernetes_takes() -> None:
    assert_valid(raw_resources())


@pytest.mark.parametrize("overlay", [KUBERNETES / "base", *OVERLAYS], ids=short)
def test_what_is_rendered_is_what_kubernetes_takes(overlay: Path, tmp_path: Path) -> None:
    resources = rendered(resources=(overlay,), components=(), scratch=tmp_path)
    assert_valid(resources)
    maps = {one["metadata"]["name"] for one in of_kind(resources, "ConfigMap")}
    volumes = [volume for pod in pod_templates(resources) for volume in pod.spec["volumes"]]
    mounted = {volume["configMap"]["name"] for volume in volumes if "configMap" in volume}
    assert mounted == maps, "every generated fleet.yaml is mounted under its generated name"


def test_a_notifier_whose_url_is_a_secret_is_read_from_one(tmp_path: Path) -> None:
    secret = (KUBERNETES / "components/fleet-secret",)
    resources = rendered(resources=(KUBERNETES / "base",), components=secret, scratch=tmp_path)
    assert_valid(resources)
    sources = {
        pod.owner: next(volume for volume in pod.spec["volumes"] if volume["name"] == "fleet")
        for pod in pod_templates(resources)
    }
    assert sources.pop("Deployment/fleetgauge-watch") == {
        "name": "fleet",
        "secret": {"secretName": "fleetgauge-watch-fleet"},
    }
    assert all("configMap" in volume for volume in sources.values())


@pytest.mark.parametrize("operator", ["kubeflow", "apache"])
def test_an_operator_of_spark_runs_the_stream_in_place_of_the_deployment(
    operator: str, tmp_path: Path
) -> None:
    overlay = KUBERNETES / f"overlays/spark-operator-{operator}"
    resources = rendered(resources=(overlay,), components=(), scratch=tmp_path)
    deployments = {one["metadata"]["name"] for one in of_kind(resources, "Deployment")}
    assert deployments == {"fleetgauge-agent", "fleetgauge-watch", "fleetgauge-dash"}
    assert len(of_kind(resources, "SparkApplication")) == 1
    accounts = of_kind(resources, "ServiceAccount")
    trusted = [one["metadata"]["name"] for one in accounts if one["automountServiceAccountToken"]]
    assert trusted == ["fleetgauge-stream"], "the driver alone asks the API server"


def test_the_application_is_what_kubeflows_operator_takes() -> None:
    application = document(KUBERNETES / "overlays/spark-operator-kubeflow/application.yaml")
    understood = SparkV1beta2SparkApplication.from_dict(application)
    assert understood is not None
    # What the operator does not know would be missing here.
    assert understood.to_dict() == application


@pytest.mark.parametrize("path", sorted(KUBERNETES.rglob("fleet.yaml")), ids=short)
def test_every_fleet_file_is_valid(path: Path) -> None:
    assert load_fleet(path).telemetry is not None


def test_the_shards_are_the_fleet_each_from_a_vantage_of_its_own() -> None:
    sharded = KUBERNETES / "overlays/sharded"
    shards = [load_fleet(sharded / name / "fleet.yaml") for name in ("eu", "us")]
    assert [cluster for shard in shards for cluster in shard.clusters] == list(
        load_fleet(sharded / "center/fleet.yaml").clusters
    )
    assert len({shard.vantage for shard in shards}) == len(shards)


def test_no_manifest_carries_a_secret() -> None:
    everything = [one for path in KUBERNETES.rglob("*.yaml") for one in documents(path)]
    assert [one for one in everything if one.get("kind") == "Secret" or "secretGenerator" in one] == []
