"""Division of a fleet's clusters among several processes of one kind."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar
from zlib import crc32


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


HasId = TypeVar("HasId", bound=_HasId)


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard ``number`` of ``count``, counted from 1. A cluster's shard depends on its id only."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``"2/5"`` as shard 2 of 5.

        Raises: ValueError when ``text`` is not NUMBER/COUNT with 1 <= NUMBER <= COUNT.
        """
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"{text!r} is not a shard: give its number and the number of shards, as 2/5")
        return cls(int(match[1]), int(match[2]))

    @property
    def suffix(self) -> str:
        """What tells the names of this shard's resources from the others' names; blank without others."""
        return "" if self.count == 1 else f"-{self.number}-of-{self.count}"

    def select_clusters(self, clusters: Iterable[HasId]) -> tuple[HasId, ...]:
        """Return the clusters that belong to this shard, in their given order."""
        return tuple(
            cluster for cluster in clusters if crc32(cluster.id.encode()) % self.count == self.number - 1
        )
