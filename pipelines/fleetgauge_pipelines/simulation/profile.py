"""A simulated cluster's profile: where it runs, how large and how fast it is, and how its load changes."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetgauge_pipelines.simulation.randomness import RandomStream, create_generator

_SERVICES = (
    "orders",
    "payments",
    "search",
    "mail",
    "catalog",
    "billing",
    "clicks",
    "audit",
    "stock",
    "routes",
)
_TEAMS = ("checkout", "discovery", "platform")
_VERSIONS = ("4.1", "4.2", "4.3")
#: Cloud, region, and the UTC hour of its peak load.
_LOCATIONS = (
    ("aws", "eu-west-1", 13),
    ("aws", "us-east-1", 18),
    ("aws", "ap-southeast-2", 4),
    ("gcp", "europe-west4", 12),
    ("gcp", "us-central1", 19),
    ("azure", "westeurope", 12),
)
REGIONS = tuple(region for _, region, _ in _LOCATIONS)
_ZONES = 3
_MULTI_ZONE_SHARE = 0.7
_BROKERS = (3, 12)
#: The worst minutes take about six times the median, so the slowest clusters start above an objective of 100
#: ms.
_MEDIAN_US = (4_000, 19_000)
_FAILING = (5e-6, 5e-5)
_LONGEST_ROLLOUT_MINUTES = 10 * 24 * 60
#: Replicas of a probe partition: the home, and the brokers with the next ids.
_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class ClusterProfile:
    """A simulated cluster; ``racks`` and ``slowdowns`` have an entry for each broker, in the order of ids."""

    cluster_id: str
    kafka_cluster_uuid: str
    cloud: str
    region: str
    tier: str
    labels: Mapping[str, str]
    racks: tuple[str, ...]
    slowdowns: tuple[float, ...]
    """Each broker's latency relative to the cluster's median, as a factor."""
    median_us: float
    peak_hour: int
    daily: float
    weekend: float
    rollout_minutes: int
    """How long after the fleet's first cluster it gets a release."""
    failing: float
    """Share of probes that fail without an incident."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """Return the ids of the brokers."""
        return tuple(range(1, len(self.racks) + 1))

    def find_affected_homes(self, faulty: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the homes whose probe partition has a replica on a faulty broker: acks=all waits for it."""
        rolled = [np.roll(faulty, -step) for step in range(min(_REPLICAS, len(faulty)))]
        affected: NDArray[np.bool_] = np.any(rolled, axis=0)
        return affected


def draw_profile(seed: int, cluster: int) -> ClusterProfile:
    """Draw the profile of the fleet's cluster number ``cluster``, counted from 0."""
    rng = create_generator(seed, RandomStream.PROFILE, cluster)
    cloud, region, peak_hour = _LOCATIONS[rng.integers(len(_LOCATIONS))]
    zones = _ZONES if rng.random() < _MULTI_ZONE_SHARE else 1
    brokers = int(rng.integers(_BROKERS[0], _BROKERS[1], endpoint=True))
    return ClusterProfile(
        cluster_id=f"{_SERVICES[cluster % len(_SERVICES)]}-{cluster // len(_SERVICES) + 1:02}",
        kafka_cluster_uuid=urlsafe_b64encode(rng.bytes(16)).decode().rstrip("="),
        cloud=cloud,
        region=region,
        tier="multi-zone" if zones > 1 else "single-zone",
        labels={"team": str(rng.choice(_TEAMS)), "kafka": str(rng.choice(_VERSIONS))},
        racks=tuple(f"{region}-{'abc'[broker % zones]}" for broker in range(brokers)),
        slowdowns=tuple(np.exp(rng.normal(0, 0.05, brokers)).tolist()),
        median_us=_draw_log_uniform(rng, *_MEDIAN_US),
        peak_hour=peak_hour,
        daily=float(rng.uniform(0.15, 0.45)),
        weekend=float(rng.uniform(0.05, 0.2)),
        rollout_minutes=int(rng.integers(_LONGEST_ROLLOUT_MINUTES)),
        failing=_draw_log_uniform(rng, *_FAILING),
    )


def _draw_log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
