"""The pods of the manifests: security context, limits, probes, and the policies that select them."""

from importlib.metadata import version

import pytest

from fleetgauge_core import __version__
from fleetgauge_core.fleet import load_fleet
from tests.deployment.images import LOCKS, read_stages
from tests.deployment.manifests import (
    INFRA,
    Document,
    PodTemplate,
    iterate_pod_templates,
    load_document,
    load_resources,
    select_kind,
)

PODS = list(iterate_pod_templates(load_resources()))
APPLICATIONS = select_kind(load_resources(), "SparkApplication")


def format_name(pod: PodTemplate) -> str:
    return f"{pod.owner}/{pod.containers[0]['name']}"


def matches(selector: Document, pod: PodTemplate) -> bool:
    return bool(selector["matchLabels"].items() <= pod.labels.items())


@pytest.mark.parametrize("pod", PODS, ids=format_name)
def test_a_pod_runs_without_root_and_can_write_only_to_its_volumes(pod: PodTemplate) -> None:
    context = pod.spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == read_stages()["agent"].instructions["USER"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod.containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("pod", PODS, ids=format_name)
def test_a_container_mounts_all_volumes_of_its_pod(pod: PodTemplate) -> None:
    volumes = {volume["name"] for volume in pod.spec["volumes"]}
    for container in pod.containers:
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("pod", PODS, ids=format_name)
def test_only_the_stream_may_write_the_lake(pod: PodTemplate) -> None:
    for container in pod.containers:
        writable = [
            mount
            for mount in container["volumeMounts"]
            if mount["name"] == "lake" and not mount.get("readOnly")
        ]
        assert bool(writable) == (pod.labels["app.kubernetes.io/component"] == "stream")


def test_the_lake_of_the_fleet_file_is_mounted_in_every_process_that_reads_it() -> None:
    lakes = {load_fleet(path).lake for path in (INFRA / "kubernetes").rglob("fleet.yaml")} - {"lake"}
    readers = [
        pod for pod in PODS if pod.labels["app.kubernetes.io/component"] in ("watch", "dash", "stream")
    ]
    assert readers
    for pod in readers:
        for container in pod.containers:
            mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            assert mounts["lake"] in lakes


@pytest.mark.parametrize("deployment", select_kind(load_resources(), "Deployment"), ids=str)
def test_a_deployment_has_limits_and_no_token(deployment: Document) -> None:
    (pod,) = iterate_pod_templates([deployment])
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
def test_an_application_requires_the_installed_version_of_spark(application: Document) -> None:
    required = (
        application["spec"].get("sparkVersion") or application["spec"]["runtimeVersions"]["sparkVersion"]
    )
    assert required == version("pyspark")


def test_every_image_is_built_from_this_repository_with_this_version() -> None:
    images = {container["image"] for pod in PODS for container in pod.containers if "image" in container}
    for application in APPLICATIONS:
        conf = application["spec"]["sparkConf"]
        images.add(application["spec"].get("image") or conf["spark.kubernetes.container.image"])
    services = load_document(INFRA / "compose/compose.yaml")["services"].values()
    images |= {service["image"] for service in services if "build" in service}
    assert images == {f"fleetgauge-{target}:{__version__}" for target in LOCKS}


def test_every_listening_pod_has_readiness_and_liveness_probes() -> None:
    for pod in PODS:
        for container in pod.containers:
            ports = {port["name"] for port in container.get("ports", ())}
            probes = {kind: container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")}
            requests = {kind: probe["httpGet"] for kind, probe in probes.items() if probe}
            assert {get["port"] for get in requests.values()} <= ports
            if ports:
                assert requests["liveness"]["path"] == "/livez"
                assert requests["readiness"]["path"] == "/readyz"
                assert requests.get("startup", requests["liveness"])["path"] == "/livez"


def test_a_disruption_budget_never_blocks_a_drain() -> None:
    replicas = {
        deployment["metadata"]["name"]: deployment["spec"]["replicas"]
        for deployment in select_kind(load_resources(), "Deployment")
    }
    budgets = select_kind(load_resources(), "PodDisruptionBudget")
    assert {budget["metadata"]["name"] for budget in budgets} == set(replicas)
    for budget in budgets:
        spec = budget["spec"]
        assert (
            spec.get("maxUnavailable", 0) > 0 or spec["minAvailable"] < replicas[budget["metadata"]["name"]]
        )


def test_every_policy_budget_and_service_selects_a_pod() -> None:
    for resource in load_resources():
        spec = resource.get("spec", {})
        if resource["kind"] == "NetworkPolicy":
            assert any(matches(spec["podSelector"], pod) for pod in PODS), resource
        elif resource["kind"] in ("PodDisruptionBudget", "PodMonitor"):
            assert any(matches(spec["selector"], pod) for pod in PODS), resource
        elif resource["kind"] == "Service":
            assert any(matches({"matchLabels": spec["selector"]}, pod) for pod in PODS), resource


def test_ingress_is_allowed_only_to_listening_ports_and_from_selected_peers() -> None:
    policies = select_kind(load_resources(), "NetworkPolicy")
    for pod in PODS:
        own = [policy["spec"] for policy in policies if matches(policy["spec"]["podSelector"], pod)]
        assert {"Ingress", "Egress"} in [set(spec["policyTypes"]) for spec in own]
        ingress_rules = [rule for spec in own for rule in spec.get("ingress", ())]
        assert all(rule.get("from") for rule in ingress_rules)
        listened = {port["name"] for container in pod.containers for port in container.get("ports", ())}
        opened = {port["port"] for rule in ingress_rules for port in rule.get("ports", ())}
        assert listened <= opened


def test_every_service_account_exists_and_mounts_no_token() -> None:
    accounts = {
        account["metadata"]["name"]: account for account in select_kind(load_resources(), "ServiceAccount")
    }
    assert {pod.spec["serviceAccountName"] for pod in PODS if "serviceAccountName" in pod.spec} <= set(
        accounts
    )
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())
