"""Lookups of names that get no response hold up neither the loop nor other names nor the end of the loop."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fleetgauge_core.kafka import ConnectionFailure, NameResolver, ProbeTimeouts, probe_endpoint
from fleetgauge_core.kafka.endpoint_probe import probe_endpoints
from tests.ports import free_port

HOST = "127.0.0.1"


class Lookups:
    """A getaddrinfo whose lookups of names that begin with `hung` wait until ``release``."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.release = threading.Event()
        self._getaddrinfo = socket.getaddrinfo

    def getaddrinfo(self, host: str, *arguments: Any, **options: Any) -> Any:
        self.hosts.append(host)
        if host.startswith("hung"):
            self.release.wait()
        return self._getaddrinfo(HOST if host.endswith(".example") else host, *arguments, **options)


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lookups]:
    replaced = Lookups()
    monkeypatch.setattr(socket, "getaddrinfo", replaced.getaddrinfo)
    yield replaced
    replaced.release.set()


async def give_up(resolver: NameResolver, host: str) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await resolver.resolve(host)


def test_an_ip_address_needs_no_lookup(lookups: Lookups) -> None:
    assert asyncio.run(NameResolver().resolve("::1")) == []
    assert lookups.hosts == []


def test_a_name_resolves_while_the_lookup_of_another_one_hangs(lookups: Lookups) -> None:
    async def resolve() -> list[str]:
        resolver = NameResolver()
        await give_up(resolver, "hung.example")
        return await resolver.resolve("kafka.example")

    assert asyncio.run(resolve()) == [HOST]


def test_a_name_is_not_looked_up_again_while_its_lookup_hangs(lookups: Lookups) -> None:
    async def resolve() -> list[str]:
        resolver = NameResolver()
        for _ in range(3):
            await give_up(resolver, "hung.example")
        assert lookups.hosts == ["hung.example"]
        lookups.release.set()
        await resolver.resolve("hung.example")
        return await resolver.resolve("hung.example")

    assert asyncio.run(resolve()) == [HOST]
    assert lookups.hosts == ["hung.example"] * 2


def test_at_most_16_lookups_run_at_once(lookups: Lookups) -> None:
    async def resolve() -> list[list[str]]:
        resolver = NameResolver()
        names = [f"hung-{number}.example" for number in range(40)]
        await asyncio.gather(*(give_up(resolver, name) for name in names))
        assert lookups.hosts == names[:16]
        lookups.release.set()
        return await asyncio.gather(*map(resolver.resolve, names))

    assert asyncio.run(resolve()) == [[HOST]] * 40


def test_a_probe_whose_lookup_hangs_ends_in_time_and_other_probes_go_on(lookups: Lookups) -> None:
    async def probe() -> list[object]:
        resolver, timeouts, port = NameResolver(), ProbeTimeouts(total_s=0.3, step_s=0.3), free_port()
        hosts = ("hung.example", "kafka.example")
        return await asyncio.gather(*(probe_endpoint(host, port, None, timeouts, resolver) for host in hosts))

    assert asyncio.run(probe()) == [
        ConnectionFailure.CONNECTION_TIMED_OUT,
        ConnectionFailure.CONNECTION_REFUSED,
    ]


def test_a_check_does_not_wait_for_a_lookup_that_hangs(lookups: Lookups) -> None:
    addresses = ["hung.example:9092", f"kafka.example:{free_port()}"]
    assert list(probe_endpoints(addresses, None).values()) == [
        ConnectionFailure.CONNECTION_TIMED_OUT,
        ConnectionFailure.CONNECTION_REFUSED,
    ]
