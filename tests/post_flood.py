"""Posts good and bad reports of changes at a fixed rate, and prints how they were answered.

python -m tests.post_flood PORT TOKEN REPORT
"""

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

PER_S = 1_000
POSTS = 5 * PER_S


async def _flood(port: int, token: str, report: str) -> dict[str, Any]:
    """Send good and bad requests at a fixed rate, each by a connection of its own."""
    good = report.encode()
    requests = [
        _request(good, token),
        _request(good, "wrong"),
        _request(b"{", token),
        _request(b" " * 70_000, token),
    ]
    began_s, tasks = time.monotonic(), []
    for number in range(POSTS):
        await asyncio.sleep(max(0.0, began_s + number / PER_S - time.monotonic()))
        tasks.append(asyncio.create_task(_send(port, requests[number % len(requests)])))
    statuses = Counter(await asyncio.gather(*tasks))
    return {"statuses": statuses, "seconds": time.monotonic() - began_s}


def _request(body: bytes, token: str) -> bytes:
    head = (
        f"POST /changes/ci HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _send(port: int, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_flood(int(sys.argv[1]), *sys.argv[2:4]))))
