"""The wire format of a tracer: an empty record whose header names its origin.

MirrorMaker 2 preserves headers, so a replica of a tracer shows where it comes from. Consumers of the topic,
if any, only have to skip empty records.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

#: Name of the header, whose value is a JSON object with the fields of Tracer.
ORIGIN_HEADER = "fleetgauge-origin"


@dataclass(frozen=True, slots=True)
class Tracer:
    """The origin of a tracer.

    ``run`` identifies the process that produced it; ``sequence`` counts the tracers of that run in that
    cluster.
    """

    cluster: str
    topic: str
    partition: int
    run: str
    sequence: int
    produced_ms: int
    """Milliseconds since the epoch, by the producer's clock."""

    @property
    def headers(self) -> dict[str, bytes]:
        """The headers of the record."""
        return {ORIGIN_HEADER: json.dumps(asdict(self)).encode()}

    @classmethod
    def from_headers(cls, headers: Iterable[tuple[str, bytes | None]]) -> Self | None:
        """Decode the headers of a record; return None if it is not a tracer."""
        encoded = next((value for name, value in headers if name == ORIGIN_HEADER), None)
        try:
            origin = json.loads(encoded or b"{}")
            return cls(
                str(origin["cluster"]),
                str(origin["topic"]),
                int(origin["partition"]),
                str(origin["run"]),
                int(origin["sequence"]),
                int(origin["produced_ms"]),
            )
        except (ValueError, TypeError, KeyError):
            return None
