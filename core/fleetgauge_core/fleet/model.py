"""fleet.yaml as a whole. Only ``clusters`` is required.

docs/configuration.md, the JSON Schema and `fleetgauge init` show the descriptions and examples of all parts.
"""

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from fleetgauge_core.fleet.burn_windows import find_unreachable_window
from fleetgauge_core.fleet.change_source import ChangeSource
from fleetgauge_core.fleet.cluster import Cluster
from fleetgauge_core.fleet.field_types import URL_PATTERN, Identifier
from fleetgauge_core.fleet.frozen_model import FrozenModel
from fleetgauge_core.fleet.notifier import Notifier
from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_core.fleet.service_levels import BUILT_IN_OBJECTIVES, BurnAlerts, Objective, Week
from fleetgauge_core.fleet.telemetry import Telemetry

#: The type of an error of one entry that only the whole fleet shows; its context has ``key`` and ``index``.
ENTRY_ERROR = "entry_error"


def _entry_error(key: str, index: int, problem: str) -> PydanticCustomError:
    return PydanticCustomError(ENTRY_ERROR, "{problem}", {"problem": problem, "key": key, "index": index})


class Fleet(FrozenModel):
    """The content of fleet.yaml."""

    name: str = Field(
        default="fleet",
        min_length=1,
        max_length=64,
        description="Name of the fleet in the pages' fleet selector.",
        examples=["production"],
    )
    simulated: bool = Field(
        default=False,
        description="Whether the lake holds simulated measurements, which must not be pooled with real ones.",
        examples=[True],
    )
    lake: str = Field(
        default="./lake",
        min_length=1,
        description="Folder of the tables, relative to this file, or URI in an object store.",
        examples=["s3a://bucket/lake"],
    )
    telemetry: Telemetry | None = Field(
        default=None,
        description="Kafka cluster that carries Fleetgauge's own records; only `backfill --from` needs none.",
    )
    week: Week = Field(default=Week(), description="When a week starts.")
    vantage: Identifier = Field(
        default="default",
        description="Location of the agent, for example its availability zone.",
        examples=["eu-west-1a"],
    )
    agent_late_ms: float = Field(
        default=100,
        gt=0,
        allow_inf_nan=False,
        description="Scheduling lag of an agent (p95 of a minute) above which its samples are not pooled.",
        examples=[150],
    )
    objectives: dict[str, Objective] = Field(
        default_factory=dict,
        description="Objectives by tier, which add to or replace single-zone (100 ms, 0.9995) and multi-zone "
        "(100 ms, 0.9999).",
    )
    burn_alerts: BurnAlerts = Field(
        default=BurnAlerts(), description="When an error budget burns fast enough for an alert."
    )
    page_url: str | None = Field(
        default=None,
        pattern=URL_PATTERN,
        description="Base URL of the pages, for links in notifications; `dash` serves them under its host.",
        examples=["https://fleetgauge.example"],
    )
    clusters: tuple[Cluster, ...] = Field(min_length=1, description="Kafka clusters to measure.")
    recovery: Recovery = Field(
        default=Recovery(),
        description="What MirrorMaker 2 replicates between the clusters, which consumer groups can fail "
        "over, and the recovery objectives; for `fleetgauge recover`.",
        examples=[
            {
                "mirrors": [
                    {
                        "source": "orders-eu",
                        "destination": "orders-us",
                        "topics": "orders|payments.*|fleetgauge.tracers",
                        "source_alias": "eu",
                        "destination_alias": "us",
                        "names": "kept",
                        "syncs_at": "destination",
                    }
                ],
                "groups": [{"groups": "billing.*", "active": "orders-eu", "passive": "orders-us"}],
                "limits": {"stale_s": 30, "replay_records": 10_000, "lost_records": 1_000},
                "objectives": {"rpo_s": 60, "readiness": 0.999},
                "tracers": {"topic": "fleetgauge.tracers", "every_s": 10, "vantage": "eu-apps"},
                "capacities": [{"cluster": "orders-us", "records_per_s": 50_000}],
                "primaries": {
                    "command": ["labels", "list", "--json"],
                    "services": {"billing": "billing-.*"},
                    "promote": ["labels", "promote", "{service}", "{to}", "--epoch", "{epoch}"],
                },
            }
        ],
    )
    notifiers: tuple[Notifier, ...] = Field(
        default=(),
        description="Receivers of notifications about findings and actions.",
        examples=[
            [
                {
                    "kind": "webhook",
                    "url": "https://hooks.example/sre",
                    "bearer": {"env": "HOOKS_TOKEN"},
                    "headers": {"X-Scope-OrgID": "sre"},
                },
                {"kind": "slack", "url_from": {"env": "SLACK_URL"}, "burn_in": True},
                {"kind": "pagerduty", "routing_key": {"file": "/run/secrets/routing-key"}},
                {
                    "kind": "alertmanager",
                    "name": "oncall",
                    "url": "https://alertmanager.example",
                    "proxy": "none",
                    "basic_auth": {"username": "fleetgauge", "password": {"file": "alertmanager.txt"}},
                    "ca": "tls/authorities.pem",
                },
            ]
        ],
    )

    change_sources: tuple[ChangeSource, ...] = Field(
        default=(),
        description="Systems that may report changes to the watch, by a POST beside its /metrics.",
        examples=[
            [
                {"name": "ci", "token": {"file": "/run/secrets/ci-token"}, "segment": "team=checkout"},
                {"name": "releases", "form": "github", "token": {"env": "GITHUB_WEBHOOK_SECRET"}},
            ]
        ],
    )

    @model_validator(mode="after")
    def _check_ids_and_tiers(self) -> Self:
        ids: set[str] = set()
        for index, cluster in enumerate(self.clusters):
            if cluster.id in ids:
                raise _entry_error("clusters", index, f"clusters: id {cluster.id!r} is given twice")
            ids.add(cluster.id)
        for index, cluster in enumerate(self.clusters):
            if cluster.tier not in self.objective_by_tier:
                tiers = ", ".join(sorted(self.objective_by_tier))
                raise _entry_error(
                    "clusters",
                    index,
                    f"clusters: {cluster.id}: tier {cluster.tier!r} has no objective; "
                    f"tiers with an objective: {tiers}",
                )
        return self

    @model_validator(mode="after")
    def _check_names_of_notifiers(self) -> Self:
        names: set[str] = set()
        for index, notifier in enumerate(self.notifiers):
            if notifier.name in names:
                problem = f"notifiers: name {notifier.name!r} is given twice"
                raise _entry_error("notifiers", index, problem)
            names |= {notifier.name} if notifier.name else set()
        return self

    @model_validator(mode="after")
    def _check_change_sources(self) -> Self:
        names: set[str] = set()
        segments = {segment for cluster in self.clusters for segment in cluster.segments}
        for index, source in enumerate(self.change_sources):
            if source.name in names:
                problem = f"change_sources: name {source.name!r} is given twice"
                raise _entry_error("change_sources", index, problem)
            if source.default_segment not in segments:
                problem = f"change_sources: {source.name}: no cluster is in {source.segment}"
                raise _entry_error("change_sources", index, problem)
            names.add(source.name)
        return self

    @model_validator(mode="after")
    def _check_clusters_of_recovery(self) -> Self:
        ids = [cluster.id for cluster in self.clusters]
        pairs = [(mirror.source, mirror.destination) for mirror in self.recovery.mirrors]
        for source, destination in pairs:
            for cluster_id in (source, destination):
                if cluster_id not in ids:
                    raise ValueError(
                        f"recovery: mirrors: unknown cluster {cluster_id!r}; known: {', '.join(ids)}"
                    )
            if source == destination:
                raise ValueError(f"recovery: mirrors: {source} cannot be mirrored to itself")
            if pairs.count((source, destination)) > 1:
                raise ValueError(f"recovery: mirrors: {source} to {destination} is given twice")
        for cluster_id in sorted(self.recovery.referenced_clusters - set(ids)):
            raise ValueError(f"recovery: unknown cluster {cluster_id!r}; known: {', '.join(ids)}")
        return self

    @model_validator(mode="after")
    def _check_burn_alerts_can_fire(self) -> Self:
        for tier, objective in self.objective_by_tier.items():
            window = find_unreachable_window(self.burn_alerts.windows, objective.availability)
            if window:
                raise ValueError(
                    f"objectives: {tier}: at availability {objective.availability:g} even a total outage "
                    f"stays below burn rate {window.factor:g} of the {window.severity} window {window.name}; "
                    f"set availability to at least {window.minimum_objective:g}"
                )
        return self

    @property
    def objective_by_tier(self) -> dict[str, Objective]:
        """Objectives of all tiers, including the built-in tiers."""
        return BUILT_IN_OBJECTIVES | self.objectives

    def cluster(self, cluster_id: str) -> Cluster:
        """Return a cluster of this fleet by its id.

        Raises: StopIteration if the fleet has no such cluster.
        """
        return next(cluster for cluster in self.clusters if cluster.id == cluster_id)

    def objective(self, cluster: Cluster) -> Objective:
        """Return the objective of the cluster's tier."""
        return self.objective_by_tier[cluster.tier]

    def latency_objective_us(self, cluster: Cluster) -> int:
        """Return the cluster's latency objective in microseconds."""
        return round(self.objective(cluster).latency_p99_ms * 1000)
