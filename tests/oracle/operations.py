"""Corrections, actions, health events and changes, which service levels depend on besides the records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operations:
    """Rows of ops/corrections, actions, health_events and changes, in no order; times are aware."""

    corrections: tuple[Mapping[str, Any], ...] = ()
    actions: tuple[Mapping[str, Any], ...] = ()
    health_events: tuple[Mapping[str, Any], ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    is_of_kept_lake: bool = False
    """Whether a finding explains only the time while it was open, as when the kept lake was written."""


NO_OPERATIONS = Operations()
