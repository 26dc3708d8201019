"""When each vantage was last heard of each cluster, so that a silent vantage stays known to the next watch.

Stored is only which vantage is silent, and since when: the next watch hears all others within seconds. So the
compacted topic gets a record only when a vantage falls silent, is heard again or is retired.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from fleetgauge_core.detection import DEFAULT_THRESHOLDS

#: A vantage that has been silent for so long counts as retired.
RETIRED_AFTER = timedelta(days=1)
_SILENT_AFTER = DEFAULT_THRESHOLDS.no_data

#: By vantage: when it was last heard if it is silent, None if it is heard regularly.
SilentSince = Mapping[str, datetime | None]


class ClusterVantage(NamedTuple):
    """A vantage of a cluster."""

    cluster_id: str
    vantage: str


class VantageTimes:
    """The time of the last pulse by cluster and vantage. For use by a single thread."""

    def __init__(self, restored: Mapping[str, SilentSince], now: datetime) -> None:
        """Start with what earlier watches stored; whom they heard regularly counts as heard until now."""
        self._last_heard = {
            cluster_id: {vantage: silent_since or now for vantage, silent_since in vantages.items()}
            for cluster_id, vantages in restored.items()
        }
        self._silent = {
            ClusterVantage(cluster_id, vantage)
            for cluster_id, vantages in restored.items()
            for vantage, silent_since in vantages.items()
            if silent_since
        }

    def last_heard(self) -> Iterator[tuple[ClusterVantage, datetime]]:
        """Yield each vantage, and when it was last heard."""
        for cluster_id, vantages in self._last_heard.items():
            for vantage, at in vantages.items():
                yield ClusterVantage(cluster_id, vantage), at

    def silent_since(self, cluster_id: str) -> SilentSince:
        """Return what is to be stored of a cluster."""
        return {
            vantage: at if (cluster_id, vantage) in self._silent else None
            for vantage, at in self._last_heard.get(cluster_id, {}).items()
        }

    def record_pulse(self, cluster_id: str, vantage: str, at: datetime) -> bool:
        """Record a pulse that was emitted at that time; return whether the cluster is to be stored again."""
        vantages, key = self._last_heard.setdefault(cluster_id, {}), ClusterVantage(cluster_id, vantage)
        before = vantages.get(vantage)
        if before and at <= before:
            return False
        vantages[vantage] = at
        is_heard_again = key in self._silent
        self._silent.discard(key)
        return before is None or is_heard_again

    def find_silent(self, now: datetime) -> frozenset[str]:
        """Find the vantages that fell silent; return their clusters, which are to be stored again."""
        for vantages in self._last_heard.values():
            # This machine's clock may have been set back.
            vantages |= {vantage: now for vantage, at in vantages.items() if at > now}
        fallen_silent = {
            key for key, at in self.last_heard() if now - at >= _SILENT_AFTER and key not in self._silent
        }
        self._silent |= fallen_silent
        return frozenset(key.cluster_id for key in fallen_silent)

    def retire(self, is_watched: Callable[[str], bool], now: datetime) -> frozenset[ClusterVantage]:
        """Drop and return vantages that have been silent for a day, and those of clusters not watched."""
        unwatched = {cluster_id for cluster_id in self._last_heard if not is_watched(cluster_id)}
        retired = {key for key, _ in self.last_heard() if key.cluster_id in unwatched}
        retired |= {
            key
            for key in self._silent
            if now - self._last_heard[key.cluster_id][key.vantage] >= RETIRED_AFTER
        }
        for key in retired:
            del self._last_heard[key.cluster_id][key.vantage]
        for cluster_id in unwatched:
            del self._last_heard[cluster_id]
        self._silent -= retired
        return frozenset(retired)
