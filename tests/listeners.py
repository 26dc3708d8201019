"""More doors into the brokers of a local fleet than it gives them itself."""

from collections.abc import Callable, Iterator, Mapping
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


#: The listeners by name that a broker gets besides its own; none where it is none of theirs.
ListenersOf = Callable[[Layout, BrokerPlace], Mapping[str, Listener]]


@contextmanager
def more_listeners(of: ListenersOf, settings: Mapping[str, str] | None = None) -> Iterator[None]:
    """Brokers of a fleet made within the block have these, and those that have any have these settings."""
    plain = properties._listeners

    def with_more(layout: Layout, cluster: ClusterSpec, place: BrokerPlace) -> dict[str, str]:
        found, listeners = plain(layout, cluster, place), of(layout, place)
        if not listeners:
            return found
        more = {
            "listeners": [f"{name}://{HOST}:{one.port}" for name, one in listeners.items()],
            "advertised.listeners": [
                f"{name}://{HOST}:{one.advertised or one.port}" for name, one in listeners.items()
            ],
            "listener.security.protocol.map": [f"{name}:{one.protocol}" for name, one in listeners.items()],
        }
        return found | {key: ",".join([found[key], *some]) for key, some in more.items()} | (settings or {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(properties, "_listeners", with_more)
        yield
