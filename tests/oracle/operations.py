"""What people and the watch wrote beside the records: corrections, actions, health events."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operations:
    """Rows of ops/corrections, ops/actions and ops/health_events, in no order; moments are aware."""

    corrections: tuple[Mapping[str, Any], ...] = ()
    actions: tuple[Mapping[str, Any], ...] = ()
    health_events: tuple[Mapping[str, Any], ...] = ()


NONE = Operations()
