"""Which parts of a process cannot run as the fleet file wants them: logged once, and shown as a metric."""

import logging
from collections.abc import Mapping
from enum import StrEnum

from prometheus_client import CollectorRegistry, Gauge

_log = logging.getLogger("fleetgauge.fleet")


class PartFault(StrEnum):
    """Why a part of the fleet file cannot be used."""

    ENTRY = "entry"
    """Its entry in the fleet file has a bad value."""
    CREDENTIALS = "credentials"
    """A secret or a certificate cannot be read."""


class PartStatus:
    """The faulty parts of one process, by kind and name. One thread updates a kind of part and fault."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Start without faulty parts."""
        self._gauge = Gauge(
            "fleetgauge_part_faulty",
            "1 while a part of the fleet file, such as a cluster or a notifier, cannot be used as it says.",
            ("part", "name", "reason"),
            registry=registry,
        )
        self._messages: dict[tuple[str, PartFault], dict[str, str]] = {}

    def update(self, part: str, fault: PartFault, messages: Mapping[str, str]) -> None:
        """Replace the faulty parts of a kind: a message by the name of each, one line with its remedy."""
        before = self._messages.get((part, fault), {})
        for name, message in messages.items():
            if before.get(name) != message:
                _log.error("%s %s: %s", part, name, message)
            self._gauge.labels(part, name, fault).set(1)
        for name in before.keys() - messages.keys():
            _log.info("%s %s: the problem is gone", part, name)
            self._gauge.remove(part, name, fault)
        self._messages[part, fault] = dict(messages)
