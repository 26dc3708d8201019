"""Which of a fleet's clusters an agent measures where several share them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from zlib import crc32

from fleetgauge_core.fleet import Cluster


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of so many, counted from 1. A cluster's part depends on its id alone."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """``"2/5"``. Raises ValueError."""
        given = re.fullmatch(r"(\d+)/(\d+)", text)
        if not given or not 1 <= int(given[1]) <= int(given[2]):
            raise ValueError(f"{text!r} is no shard: give one of so many, as 2/5")
        return cls(int(given[1]), int(given[2]))

    @property
    def folder(self) -> str:
        """Its own spool's name beside the others'."""
        return "spool" if self.of == 1 else f"spool-{self.number}-of-{self.of}"

    def of_clusters(self, clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
        """Those of its part."""
        return tuple(one for one in clusters if crc32(one.id.encode()) % self.of == self.number - 1)
