"""A tracer as it goes over the wire: an empty record whose header says where it comes from.

Mirrors keep headers, so that it can be told from the copy alone. Consumers of the topic, if there are any,
have nothing to skip but empty records.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

#: The header, a JSON object with the fields of Tracer.
ORIGIN = "fleetgauge-origin"


@dataclass(frozen=True, slots=True)
class Tracer:
    """``run``: of which run of which vantage; ``sequence``: of that run, in that cluster."""

    cluster: str
    topic: str
    partition: int
    run: str
    sequence: int
    produced_ms: int
    """Since 1970, by its producer's clock."""

    @property
    def headers(self) -> dict[str, bytes]:
        return {ORIGIN: json.dumps(asdict(self)).encode()}

    @classmethod
    def of(cls, headers: Iterable[tuple[str, bytes | None]]) -> Self | None:
        """None of a record that is no tracer of ours."""
        said = next((value for name, value in headers if name == ORIGIN), None)
        try:
            found = json.loads(said or b"{}")
            return cls(
                str(found["cluster"]),
                str(found["topic"]),
                int(found["partition"]),
                str(found["run"]),
                int(found["sequence"]),
                int(found["produced_ms"]),
            )
        except (ValueError, TypeError, KeyError):
            return None
