"""The shape of fleet.yaml. Only ``clusters`` is required.

Descriptions and examples are what docs/configuration.md, the JSON Schema and `fleetgauge init` say.
"""

from datetime import datetime
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, Field, field_validator, model_validator

from fleetgauge_core.fleet.burn_windows import (
    BURN_WINDOWS,
    BurnWindow,
    PeriodDays,
    deaf_window,
)
from fleetgauge_core.fleet.frozen import Frozen
from fleetgauge_core.fleet.mitigation import Mitigation
from fleetgauge_core.fleet.recovery import Recovery
from fleetgauge_core.fleet.security import (
    OPEN,
    URL,
    Access,
    Secret,
    Security,
)

_IDENTIFIER = r"^[A-Za-z0-9._-]{1,128}$"
_ADDRESS = r"([^\s,:/\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
_BOOTSTRAP = rf"^{_ADDRESS}(\s*,\s*{_ADDRESS})*$"
#: Asked for in the schema alone: the model reads a moment in more ways than an editor can check.
_MOMENT = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$"

#: What a person is told instead of the pattern.
WORDS_BY_PATTERN = {
    _IDENTIFIER: "1 to 128 letters (A-Z, a-z), digits, dots, underscores and dashes",
    _BOOTSTRAP: "HOST:PORT, or several with commas between them",
    URL: "http://... or https://...",
}

Identifier = Annotated[str, Field(pattern=_IDENTIFIER)]
Bootstrap = Annotated[str, Field(pattern=_BOOTSTRAP)]
Moment = Annotated[AwareDatetime, Field(json_schema_extra={"pattern": _MOMENT})]
ExporterUrl = Annotated[str, Field(pattern=URL)]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class Week(Frozen):
    """When a week starts: a day at 00:00 in an IANA zone."""

    zone: str = Field(
        default="UTC", description="The IANA time zone of weeks and their days.", examples=["Europe/Berlin"]
    )
    start: Weekday = Field(
        default="monday", description="The day on which a week starts, at 00:00.", examples=["sunday"]
    )

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"{zone!r} is not an IANA time zone such as Europe/Berlin") from error
        return zone


class Objective(Frozen):
    """What a tier promises for a week."""

    latency_p99_ms: float = Field(
        gt=0, description="99% of the minutes have their p99 latency at or under this.", examples=[50]
    )
    availability: float = Field(
        gt=0, lt=1, description="The share of all probes that succeeds.", examples=[0.9999]
    )


class BurnAlerts(Frozen):
    """When an error budget burns too fast."""

    period_days: PeriodDays = Field(
        default=7,
        description="The budget's period that the windows are made for: 7 pages from 13.44 times the even "
        "pace over 1h/5m, 30 from 14.4 times.",
        examples=[30],
    )

    @property
    def windows(self) -> tuple[BurnWindow, ...]:
        return BURN_WINDOWS[self.period_days]


class Topic(Frozen):
    """A topic of the telemetry cluster; it is made where it is absent."""

    name: Identifier = Field(description="Its name.", examples=["fleetgauge.records"])
    partitions: int = Field(ge=1, description="How many partitions it is made with.", examples=[12])
    retention_hours: float = Field(
        gt=0, description="How long it keeps records, set when it is made.", examples=[168]
    )


class StateTopic(Frozen):
    """A compacted topic of the telemetry cluster, of one partition; it is made where it is absent."""

    name: Identifier = Field(description="Its name.", examples=["fleetgauge.watch-state"])


class Topics(Frozen):
    """Names and settings of the telemetry cluster's topics."""

    probe_minutes: Topic = Field(
        default=Topic(name="fleetgauge.probe-minutes", partitions=12, retention_hours=7 * 24),
        description="A record per broker, leg and minute: what the tables are made of.",
    )
    probe_pulse: Topic = Field(
        default=Topic(name="fleetgauge.probe-pulse", partitions=3, retention_hours=24),
        description="A pulse per cluster every 5 s: what the watch reads.",
    )
    health_events: Topic = Field(
        default=Topic(name="fleetgauge.health-events", partitions=1, retention_hours=30 * 24),
        description="Who was named sick and cleared: what the watch writes.",
    )
    watch_state: StateTopic = Field(
        default=StateTopic(name="fleetgauge.watch-state"),
        description="What a watch leaves for the next one besides.",
    )
    demotions: StateTopic = Field(
        default=StateTopic(name="fleetgauge.demotions"),
        description="Who leads nothing for a while: `fleetgauge mitigate` writes it, agents read it.",
    )


class Telemetry(Frozen):
    """The Kafka cluster that carries the records."""

    bootstrap: Bootstrap = Field(
        description="Where its brokers are found; port 9092 unless given.", examples=["telemetry:9092"]
    )
    security: Security = Field(
        default=OPEN,
        description="What the listener asks for: TLS, a password, a token. Without it: nothing.",
        examples=[
            {
                "tls": {},
                "oauth": {
                    "token_url": "https://login.example/oauth2/token",
                    "client_id": "fleetgauge",
                    "client_secret": {"env": "FLEETGAUGE_CLIENT_SECRET"},
                    "scope": "kafka",
                },
            }
        ],
    )
    topics: Topics = Field(default=Topics(), description="Its topics; all have defaults.")

    @property
    def access(self) -> Access:
        return Access(self.bootstrap, self.security)


class Cluster(Frozen):
    """One Kafka cluster to measure, and how to group it in reviews."""

    id: Identifier = Field(
        description="Its name in records, tables and pages; keep it for ever.", examples=["orders-eu"]
    )
    bootstrap: Bootstrap = Field(
        description="Where its brokers are found; port 9092 unless given.",
        examples=["kafka-1:9092,kafka-2:9092"],
    )
    security: Security = Field(
        default=OPEN,
        description="What the listener asks for: TLS, a password, a token. Without it: nothing.",
        examples=[
            {
                "tls": {
                    "ca": "tls/authorities.pem",
                    "certificate": "tls/fleetgauge.pem",
                    "key": "tls/fleetgauge.key",
                    "key_password": {"env": "KEY_PASSWORD"},
                },
                "sasl": {
                    "mechanism": "SCRAM-SHA-512",
                    "username": "fleetgauge",
                    "password": {"file": "/run/secrets/orders-password"},
                },
            }
        ],
    )
    cloud: str | None = Field(default=None, description="A segment for reviews.", examples=["aws"])
    region: str | None = Field(default=None, description="A segment for reviews.", examples=["eu-west-1"])
    tier: str = Field(
        default="single-zone",
        description="Whose objective it is held to: single-zone, multi-zone, or a key of `objectives`.",
        examples=["multi-zone", "single-zone"],
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="More segments for reviews.", examples=[{"team": "checkout"}]
    )
    since: Moment | None = Field(
        default=None,
        description="Minutes before this do not count; with time zone. Without it: from its first record.",
        examples=["2026-03-02T00:00:00Z"],
    )
    until: Moment | None = Field(
        default=None,
        description="Minutes from this on do not count; with time zone, later than `since`.",
        examples=["2026-12-31T23:00:00+01:00"],
    )
    managed: bool = Field(
        default=True,
        description="Whether the agent makes and mends its probe topic, or only says what is to be done.",
        examples=[False],
    )
    retired: tuple[int, ...] = Field(
        default=(), description="Ids of brokers that are gone and not to be expected.", examples=[[4, 5]]
    )
    demoted: tuple[int, ...] = Field(
        default=(),
        description="Ids of brokers that are to lead nothing: the agent lets others lead their partitions. "
        "What `fleetgauge mitigate` has demoted it knows without.",
        examples=[[2]],
    )
    restart: tuple[str, ...] = Field(
        default=(),
        description="Command that restarts a broker, for `fleetgauge mitigate`; {broker} is its id. It runs "
        "where that is called, without a shell, and ends once the broker is on its way up.",
        examples=[["systemctl", "--host", "kafka-{broker}", "restart", "kafka"]],
    )
    metrics: dict[str, ExporterUrl] = Field(
        default={},
        description="Where the brokers' JMX exporters answer: by broker id, or under `*` for all others; "
        "{host} is the broker's own. Without it a disk that hangs looks like a broker that does.",
        examples=[{"*": "http://{host}:7071/metrics"}],
    )
    mitigation: Mitigation = Field(
        default=Mitigation(), description="What `fleetgauge mitigate` may do about its brokers."
    )

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Self:
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise ValueError("until must be later than since")
        return self

    @property
    def access(self) -> Access:
        return Access(self.bootstrap, self.security)

    def exporter(self, broker_id: int, host: str) -> str | None:
        """Where that broker's metrics are; None where nobody has said."""
        url = self.metrics.get(str(broker_id), self.metrics.get("*"))
        return url.replace("{host}", f"[{host}]" if ":" in host else host) if url else None

    @property
    def segments(self) -> frozenset[tuple[str, str]]:
        """The groups that it counts in, as name and value; the fleet's value is empty.

        A label may be called as another segment is: then the cluster is in both.
        """
        own = (("fleet", ""), ("cloud", self.cloud), ("region", self.region), ("tier", self.tier))
        named = (*own, *self.labels.items())
        return frozenset((name, value) for name, value in named if value is not None)

    def expects(self, minute: datetime) -> bool:
        """Whether the cluster counts in the minute that starts then."""
        after_start = self.since is None or minute >= self.since
        return after_start and (self.until is None or minute < self.until)


class Notifier(Frozen):
    """Where findings are sent."""

    kind: Literal["webhook", "slack", "pagerduty", "alertmanager", "heartbeat"] = Field(
        description="A POST with JSON for each finding; a line in a channel, by Slack's incoming webhooks or "
        "what takes their JSON; an incident by PagerDuty's Events API v2; Alertmanager's API v2; a sign of "
        "life every minute, to somebody who pages when it stops.",
        examples=["webhook", "slack", "pagerduty", "alertmanager", "heartbeat"],
    )
    url: str | None = Field(
        default=None,
        pattern=URL,
        description="Who gets the POST, or where Alertmanager is; PagerDuty's own if it is not given.",
        examples=["https://hooks.example/sre", "http://alertmanager:9093"],
    )
    url_from: Secret | None = Field(
        default=None,
        description="Where a URL is that is itself a secret, as Slack's are; instead of `url`.",
    )
    routing_key: Secret | None = Field(
        default=None, description="Where the integration key of a service in PagerDuty is."
    )
    burn_in: bool = Field(
        default=False,
        description="Whether it is tried: it is told what would have paged, of severity burn-in, which wakes "
        "nobody.",
        examples=[True],
    )

    @model_validator(mode="after")
    def _is_addressed(self) -> Self:
        if self.url and self.url_from:
            raise ValueError("wanted: one of url and url_from")
        if self.kind != "pagerduty" and not (self.url or self.url_from):
            raise ValueError("wanted: url, or url_from with {env: NAME} or {file: PATH}")
        if (self.kind == "pagerduty") != (self.routing_key is not None):
            raise ValueError("routing_key goes with pagerduty, and pagerduty with routing_key")
        return self

    def address(self) -> str:
        """As it is now. Raises SecretError."""
        return self.url_from.read() if self.url_from else self.url or _PAGERDUTY


_PAGERDUTY = "https://events.pagerduty.com"
_OBJECTIVES = {
    "single-zone": Objective(latency_p99_ms=100, availability=0.9995),
    "multi-zone": Objective(latency_p99_ms=100, availability=0.9999),
}


class Fleet(Frozen):
    """All of fleet.yaml."""

    name: str = Field(
        default="fleet",
        min_length=1,
        max_length=64,
        description="What the page's switch between fleets calls this one.",
        examples=["production"],
    )
    simulated: bool = Field(
        default=False,
        description="Whether its lake holds made-up measurements, never to be pooled with real ones.",
        examples=[True],
    )
    lake: str = Field(
        default="./lake",
        min_length=1,
        description="The folder of the tables, relative to this file; or an object store's URI.",
        examples=["s3a://bucket/lake"],
    )
    telemetry: Telemetry | None = Field(
        default=None,
        description="The Kafka cluster that carries the records. Only `backfill --from` does without it.",
    )
    week: Week = Field(default=Week(), description="When a week starts.")
    vantage: Identifier = Field(
        default="default",
        description="Where this agent stands, for instance its zone.",
        examples=["eu-west-1a"],
    )
    agent_late_ms: float = Field(
        default=100,
        gt=0,
        allow_inf_nan=False,
        description="An agent whose own schedule lags more than this (p95 of a minute) leaves pooling.",
        examples=[150],
    )
    objectives: dict[str, Objective] = Field(
        default_factory=dict,
        description="What each tier promises; adds to single-zone (100 ms, 0.9995) and multi-zone "
        "(100 ms, 0.9999), or replaces them.",
    )
    burn_alerts: BurnAlerts = Field(
        default=BurnAlerts(), description="What tells that an error budget is spent too fast."
    )
    page_url: str | None = Field(
        default=None,
        pattern=URL,
        description="Where people reach the page, for the links in what notifiers are told.",
        examples=["https://fleetgauge.example"],
    )
    clusters: tuple[Cluster, ...] = Field(min_length=1, description="The Kafka clusters to measure.")
    recovery: Recovery = Field(
        default=Recovery(),
        description="What MirrorMaker 2 copies between the clusters, which consumer groups may go on in "
        "another one, and what makes that ready; for `fleetgauge recover`.",
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
        description="Whom the watch tells when it names or clears a broker.",
        examples=[
            [
                {"kind": "webhook", "url": "https://hooks.example/sre"},
                {"kind": "slack", "url_from": {"env": "SLACK_URL"}, "burn_in": True},
                {"kind": "pagerduty", "routing_key": {"file": "/run/secrets/routing-key"}},
            ]
        ],
    )

    @model_validator(mode="after")
    def _refers_to_what_exists(self) -> Self:
        ids = [cluster.id for cluster in self.clusters]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"clusters: id {twice[0]!r} is given twice")
        for cluster in self.clusters:
            if cluster.tier not in self.objective_by_tier:
                known = ", ".join(sorted(self.objective_by_tier))
                raise ValueError(
                    f"clusters: {cluster.id}: tier {cluster.tier!r} has no objective (known: {known})"
                )
        return self

    @model_validator(mode="after")
    def _mirrors_are_between_clusters(self) -> Self:
        known = [cluster.id for cluster in self.clusters]
        pairs = [(one.source, one.destination) for one in self.recovery.mirrors]
        for source, destination in pairs:
            for cluster in (source, destination):
                if cluster not in known:
                    raise ValueError(f"recovery: mirrors: no cluster {cluster!r} (known: {', '.join(known)})")
            if source == destination or pairs.count((source, destination)) > 1:
                raise ValueError(f"recovery: mirrors: {source} to {destination} is given twice, or to itself")
        for cluster in sorted(self.recovery.clusters - set(known)):
            raise ValueError(f"recovery: no cluster {cluster!r} (known: {', '.join(known)})")
        return self

    @model_validator(mode="after")
    def _every_burn_alert_can_fire(self) -> Self:
        for tier, objective in self.objective_by_tier.items():
            window = deaf_window(self.burn_alerts.windows, objective.availability)
            if window:
                raise ValueError(
                    f"objectives: {tier}: at availability {objective.availability:g} not even a total "
                    f"outage burns {window.factor:g} times the budget, which the {window.severity} window "
                    f"{window.name} asks for; give at least {window.least_objective:g}"
                )
        return self

    @property
    def objective_by_tier(self) -> dict[str, Objective]:
        """Every tier's objective, the built-in ones included."""
        return _OBJECTIVES | self.objectives

    def cluster(self, cluster_id: str) -> Cluster:
        """One that is known to be there."""
        return next(one for one in self.clusters if one.id == cluster_id)

    def objective(self, cluster: Cluster) -> Objective:
        """The objective of the cluster's tier."""
        return self.objective_by_tier[cluster.tier]
