"""Holds connections to a server until its stdin is closed: idle ones, and ones that send a byte a second.

python -m tests.benchmarks._silent_clients PORT IDLE SLOW
"""

import asyncio
import resource
import sys

_REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + 1_000 * b"x"
_HOST = "127.0.0.1"


async def _hold(port: int, idle: int, slow: int) -> None:
    connections = [await asyncio.open_connection(_HOST, port) for _ in range(idle + slow)]
    print("ready", flush=True)
    tasks = [asyncio.create_task(_send_slowly(port, connection)) for connection in connections[idle:]]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()


async def _send_slowly(port: int, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Send a request a byte a second; connect again if the server ends the connection."""
    while True:
        _, writer = connection
        try:
            for byte in _REQUEST:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(1)
        except OSError:
            pass
        connection = await asyncio.open_connection(_HOST, port)


if __name__ == "__main__":
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    asyncio.run(_hold(*map(int, sys.argv[1:])))
