"""Errors of a local fleet; each message is a single line that names the remedy.

LocalFleetError
├── NoFleetError     no fleet runs in the given folder
├── NotReadyError    brokers or mirrors did not become ready by the deadline, or one of them ended
└── RequestError     the runner rejected a request: an unknown cluster, broker, mirror or fault kind
"""

from fleetgauge_core.errors import OperationalError


class LocalFleetError(OperationalError):
    """An operation on the local fleet failed."""


class NoFleetError(LocalFleetError):
    """No fleet runs in the given folder."""


class NotReadyError(LocalFleetError):
    """Brokers or mirrors did not become ready by the deadline, or one of them ended."""


class RequestError(LocalFleetError):
    """The runner rejected a request."""
