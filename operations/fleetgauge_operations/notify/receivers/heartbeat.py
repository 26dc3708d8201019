"""The body of a heartbeat's POST."""

from datetime import datetime
from typing import Any


def heartbeat_body(at: datetime) -> dict[str, Any]:
    """Return the body; services that page when it stops look at its arrival alone."""
    return {"status": "watching", "at": at.isoformat()}
