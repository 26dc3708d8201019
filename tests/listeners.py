"""Additional listeners for the brokers of a local fleet."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from fleetgauge_local import properties
from fleetgauge_local.layout import HOST, BrokerPlacement, ClusterSpec, FleetLayout


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener's port and security protocol, and its advertised port if that differs."""

    port: int
    protocol: str = "PLAINTEXT"
    advertised: int | None = None


#: Returns the additional listeners of a broker by name; empty for a broker without any.
ListenersOf = Callable[[FleetLayout, BrokerPlacement], Mapping[str, Listener]]


@contextmanager
def add_listeners(listeners_of: ListenersOf, settings: Mapping[str, str] | None = None) -> Iterator[None]:
    """Add listeners to the brokers of fleets created within the block, and settings to those brokers."""
    original = properties._listeners

    def with_more(layout: FleetLayout, cluster: ClusterSpec, place: BrokerPlacement) -> dict[str, str]:
        broker_settings, listeners = original(layout, cluster, place), listeners_of(layout, place)
        if not listeners:
            return broker_settings
        additions = {
            "listeners": [f"{name}://{HOST}:{listener.port}" for name, listener in listeners.items()],
            "advertised.listeners": [
                f"{name}://{HOST}:{listener.advertised or listener.port}"
                for name, listener in listeners.items()
            ],
            "listener.security.protocol.map": [
                f"{name}:{listener.protocol}" for name, listener in listeners.items()
            ],
        }
        extended = {key: ",".join([broker_settings[key], *entries]) for key, entries in additions.items()}
        return broker_settings | extended | dict(settings or {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(properties, "_listeners", with_more)
        yield
