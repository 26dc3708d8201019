"""What every pod of the manifests promises: rights, limits, probes, and policies that reach it."""

from importlib.metadata import version

import pytest

from fleetgauge_core import __version__
from tests.deployment.images import LOCKS, stages
from tests.deployment.manifests import (
    INFRA,
    Document,
    PodTemplate,
    document,
    of_kind,
    pod_templates,
    raw_resources,
)

PODS = list(pod_templates(raw_resources()))
APPLICATIONS = of_kind(raw_resources(), "SparkApplication")


def name_of(pod: PodTemplate) -> str:
    return f"{pod.owner}/{pod.containers[0]['name']}"


def matches(selector: Document, pod: PodTemplate) -> bool:
    return bool(selector["matchLabels"].items() <= pod.labels.items())


@pytest.mark.parametrize("pod", PODS, ids=name_of)
def test_a_pod_runs_as_nobody_and_can_write_nothing_but_its_volumes(pod: PodTemplate) -> None:
    rights = pod.spec["securityContext"]
    assert rights["runAsNonRoot"] is True
    assert f"{rights['runAsUser']}:{rights['runAsGroup']}" == stages()["agent"].said["USER"]
    assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod.containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("pod", PODS, ids=name_of)
def test_what_a_container_mounts_is_a_volume_of_its_pod(pod: PodTemplate) -> None:
    volumes = {volume["name"] for volume in pod.spec["volumes"]}
    for container in pod.containers:
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("pod", PODS, ids=name_of)
def test_only_the_stream_may_write_the_lake(pod: PodTemplate) -> None:
    for container in pod.containers:
        writable = [
            mount
            for mount in container["volumeMounts"]
            if mount["name"] == "lake" and not mount.get("readOnly")
        ]
        assert bool(writable) == (pod.labels["app.kubernetes.io/component"] == "stream")


@pytest.mark.parametrize("deployment", of_kind(raw_resources(), "Deployment"), ids=str)
def test_a_deployment_has_limits_and_no_token(deployment: Document) -> None:
    (pod,) = pod_templates([deployment])
    assert pod.spec["automountServiceAccountToken"] is False
    assert matches(deployment["spec"]["selector"], pod)
    for container in pod.containers:
        for kind in ("requests", "limits"):
            assert set(container["resources"][kind]) == {"cpu", "memory"}


@pytest.mark.parametrize("application", APPLICATIONS, ids=str)
def test_sparks_pods_have_limits(application: Document) -> None:
    spec, conf = application["spec"], application["spec"]["sparkConf"]
    for role in ("driver", "executor"):
        operators = spec.get(role, {})
        assert "coreLimit" in operators or f"spark.kubernetes.{role}.limit.cores" in conf
        assert "memory" in operators or f"spark.{role}.memory" in conf


@pytest.mark.parametrize("application", APPLICATIONS, ids=str)
def test_an_application_asks_for_the_spark_that_was_tested(application: Document) -> None:
    spoken = application["spec"].get("sparkVersion") or application["spec"]["runtimeVersions"]["sparkVersion"]
    assert spoken == version("pyspark")


def test_every_image_is_built_here_under_this_version() -> None:
    images = {container["image"] for pod in PODS for container in pod.containers if "image" in container}
    for application in APPLICATIONS:
        conf = application["spec"]["sparkConf"]
        images.add(application["spec"].get("image") or conf["spark.kubernetes.container.image"])
    composed = document(INFRA / "compose/compose.yaml")["services"].values()
    images |= {service["image"] for service in composed if "build" in service}
    assert images == {f"fleetgauge-{target}:{__version__}" for target in LOCKS}


def test_every_pod_asks_for_readiness_and_life_where_it_listens() -> None:
    for pod in PODS:
        for container in pod.containers:
            ports = {port["name"] for port in container.get("ports", ())}
            probes = {kind: container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")}
            asked = {kind: probe["httpGet"] for kind, probe in probes.items() if probe}
            assert {get["port"] for get in asked.values()} <= ports
            if ports:
                assert asked["liveness"]["path"] == "/livez"
                assert asked["readiness"]["path"] == "/readyz"
                assert asked.get("startup", asked["liveness"])["path"] == "/livez"


def test_a_drain_is_never_forbidden() -> None:
    replicas = {
        one["metadata"]["name"]: one["spec"]["replicas"] for one in of_kind(raw_resources(), "Deployment")
    }
    budgets = of_kind(raw_resources(), "PodDisruptionBudget")
    assert {one["metadata"]["name"] for one in budgets} == set(replicas)
    for budget in budgets:
        spec = budget["spec"]
        assert (
            spec.get("maxUnavailable", 0) > 0 or spec["minAvailable"] < replicas[budget["metadata"]["name"]]
        )


def test_every_policy_budget_and_service_selects_a_pod() -> None:
    for resource in raw_resources():
        spec = resource.get("spec", {})
        if resource["kind"] == "NetworkPolicy":
            assert any(matches(spec["podSelector"], pod) for pod in PODS), resource
        elif resource["kind"] in ("PodDisruptionBudget", "PodMonitor"):
            assert any(matches(spec["selector"], pod) for pod in PODS), resource
        elif resource["kind"] == "Service":
            assert any(matches({"matchLabels": spec["selector"]}, pod) for pod in PODS), resource


def test_a_pod_can_be_reached_only_where_it_listens_and_by_whom_that_concerns() -> None:
    policies = of_kind(raw_resources(), "NetworkPolicy")
    for pod in PODS:
        own = [policy["spec"] for policy in policies if matches(policy["spec"]["podSelector"], pod)]
        assert {"Ingress", "Egress"} in [set(spec["policyTypes"]) for spec in own]
        entrances = [entrance for spec in own for entrance in spec.get("ingress", ())]
        assert all(entrance.get("from") for entrance in entrances)
        listened = {port["name"] for container in pod.containers for port in container.get("ports", ())}
        opened = {port["port"] for entrance in entrances for port in entrance.get("ports", ())}
        assert listened <= opened


def test_every_account_that_is_named_exists_and_gets_no_token() -> None:
    accounts = {one["metadata"]["name"]: one for one in of_kind(raw_resources(), "ServiceAccount")}
    assert {pod.spec["serviceAccountName"] for pod in PODS if "serviceAccountName" in pod.spec} <= set(
        accounts
    )
    assert all(one["automountServiceAccountToken"] is False for one in accounts.values())
