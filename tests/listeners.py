"""More doors into the brokers of a local fleet than it gives them itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from fleetgauge_local import properties
from fleetgauge_local.layout import HOST, BrokerPlace, ClusterSpec, Layout


@dataclass(frozen=True, slots=True)
class Listener:
    """Where a broker listens, what it speaks there, and where it says that clients find it, if elsewhere."""

    port: int
    protocol: str = "PLAINTEXT"
    advertised: int | None = None


@contextmanager
def more_listeners(
    cluster_id: str, listeners: Mapping[str, Listener], settings: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A fleet made within the block gives that cluster's one broker these, and these settings."""
    plain = properties._listeners
    more = {
        "listeners": [f"{name}://{HOST}:{one.port}" for name, one in listeners.items()],
        "advertised.listeners": [
            f"{name}://{HOST}:{one.advertised or one.port}" for name, one in listeners.items()
        ],
        "listener.security.protocol.map": [f"{name}:{one.protocol}" for name, one in listeners.items()],
    }

    def with_more(layout: Layout, cluster: ClusterSpec, place: BrokerPlace) -> dict[str, str]:
        found = plain(layout, cluster, place)
        if cluster.id != cluster_id:
            return found
        return found | {key: ",".join([found[key], *some]) for key, some in more.items()} | (settings or {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(properties, "_listeners", with_more)
        yield
