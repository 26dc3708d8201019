"""Corrections, actions and health events, which service levels depend on besides the records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operations:
    """Rows of ops/corrections, ops/actions and ops/health_events, in no order; times are aware."""

    corrections: tuple[Mapping[str, Any], ...] = ()
    actions: tuple[Mapping[str, Any], ...] = ()
    health_events: tuple[Mapping[str, Any], ...] = ()


NO_OPERATIONS = Operations()
