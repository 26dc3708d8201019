"""What stands in the way of a cold question, on real sockets."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import trustme

from fleetgauge_core.kafka.cold_connection import Answer, cold_answer
from fleetgauge_core.kafka.connection_failure import Silence
from fleetgauge_core.kafka.endpoint_probe import Reply, knock
from tests.ports import free_port

HOST = "127.0.0.1"
TIMEOUT_S = 5.0
BODY = struct.pack(">ihi", 1, 0, 2) + struct.pack(">hhh", 18, 0, 4) + struct.pack(">hhh", 35, 1, 5)
OURS, STRANGER = trustme.CA(), trustme.CA()
END = datetime(2040, 5, 1, tzinfo=UTC)
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def kafka(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1024)
    writer.write(struct.pack(">i", len(BODY)) + BODY)


async def mute(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    while await reader.read(1024):
        pass


async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1024)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@asynccontextmanager
async def listening(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except OSError:
            pass  # whoever asked has gone
        finally:
            writer.close()

    port = free_port()
    async with await asyncio.start_server(serve, HOST, port, ssl=tls):
        yield port


def server(issued: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued.configure_cert(context)
    return context


def client() -> ssl.SSLContext:
    context = ssl.create_default_context()
    OURS.configure_trust(context)
    return context


def met(
    talk: Talk, tls: ssl.SSLContext | None, ours: ssl.SSLContext | None, host: str = HOST
) -> tuple[Answer | Silence, Reply | Silence]:
    """What a cold question and a knock make of it."""

    async def ask() -> tuple[Answer | Silence, Reply | Silence]:
        async with listening(talk, tls) as port:
            answer = await cold_answer(host, port, TIMEOUT_S if talk is not mute else 0.5, ours)
            return answer, await asyncio.to_thread(knock, f"{host}:{port}", ours)

    return asyncio.run(ask())


GOOD = OURS.issue_cert(HOST, "localhost", not_after=END)


@pytest.mark.parametrize(
    ("talk", "tls", "ours", "silence"),
    [
        (mute, None, None, Silence.MUTE),
        (noise, None, None, Silence.NOT_KAFKA),
        (kafka, None, client(), Silence.NO_TLS),
        (
            kafka,
            server(OURS.issue_cert(HOST, not_after=datetime.now(UTC) - timedelta(days=1))),
            client(),
            Silence.CERTIFICATE_EXPIRED,
        ),
        (
            kafka,
            server(OURS.issue_cert("elsewhere.example")),
            client(),
            Silence.CERTIFICATE_OF_ANOTHER_NAME,
        ),
        (kafka, server(STRANGER.issue_cert(HOST)), client(), Silence.CERTIFICATE_UNTRUSTED),
    ],
    ids=["mute", "noise", "no TLS", "expired", "another name", "stranger"],
)
def test_each_thing_in_the_way_has_a_name(
    talk: Talk, tls: ssl.SSLContext | None, ours: ssl.SSLContext | None, silence: Silence
) -> None:
    assert met(talk, tls, ours) == (silence, silence)


def test_an_answer_tells_what_each_step_took_and_until_when_the_certificate_is_good() -> None:
    answer, reply = met(kafka, server(GOOD), client(), "localhost")
    assert isinstance(answer, Answer)
    assert answer.dns_us is not None
    assert answer.tls_us is not None
    assert answer.dns_us + answer.connect_us + answer.tls_us <= answer.total_us
    assert answer.certificate_ends == END
    assert reply == Reply((4, 3), END)


def test_an_address_is_not_looked_up_and_without_tls_there_is_no_certificate() -> None:
    answer, reply = met(kafka, None, None)
    assert isinstance(answer, Answer)
    assert (answer.dns_us, answer.tls_us, answer.certificate_ends) == (None, None, None)
    assert reply == Reply((4, 3), None)


@pytest.mark.parametrize(
    ("host", "silence"), [("no-such-host.invalid", Silence.NO_NAME), (HOST, Silence.REFUSED)]
)
def test_without_a_connection_there_is_a_reason_as_well(host: str, silence: Silence) -> None:
    assert asyncio.run(cold_answer(host, free_port(), TIMEOUT_S, None)) is silence
