"""How many records a second come into each cluster, by the ends of its logs."""

from collections import deque
from collections.abc import Mapping

#: A topic's partition.
Place = tuple[str, int]

#: A rate is over this much, or as much as there is.
_OVER_MS = 60_000


class Rates:
    """Of the partitions that are mirrored."""

    def __init__(self) -> None:
        self._looks: dict[str, deque[tuple[int, Mapping[Place, int]]]] = {}

    def look(self, cluster: str, ends: Mapping[Place, int], at_ms: int) -> None:
        """Where that cluster's logs ended then."""
        looks = self._looks.setdefault(cluster, deque())
        looks.append((at_ms, ends))
        while len(looks) > 2 and looks[1][0] <= at_ms - _OVER_MS:
            looks.popleft()

    def of(self, cluster: str) -> float | None:
        """None before the second look."""
        looks = self._looks.get(cluster)
        if not looks or len(looks) < 2:
            return None
        (before_ms, before), (now_ms, now) = looks[0], looks[-1]
        came = sum(
            end - before[place] if before.get(place, end + 1) <= end else 0 for place, end in now.items()
        )
        return 1000 * came / (now_ms - before_ms) if now_ms > before_ms else None
