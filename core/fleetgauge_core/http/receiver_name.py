"""How notifiers are named to people."""

from collections import Counter
from collections.abc import Sequence

import urllib3

from fleetgauge_core.fleet import Notifier, SecretError


def read_host(notifier: Notifier) -> str:
    """Return the host of a notifier's URL; everything else in a URL may be a secret. Raises: SecretError."""
    try:
        return urllib3.util.parse_url(notifier.read_url()).host or "unknown"
    except urllib3.exceptions.LocationParseError:
        return "unknown"


def name_for_people(notifiers: Sequence[Notifier]) -> list[str]:
    """Return a unique name for each notifier: its own, or kind and host, with a number if those are equal."""
    names = [notifier.name or _default_name(notifier) for notifier in notifiers]
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} {names[:position].count(name) + 1}"
        for position, name in enumerate(names)
    ]


def _default_name(notifier: Notifier) -> str:
    try:
        return f"{notifier.kind} {read_host(notifier)}"
    except SecretError:
        return notifier.kind
