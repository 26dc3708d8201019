"""What one cluster's probing hands on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.contract import ProbeMinute, ProbePulse


@dataclass(frozen=True, slots=True)
class Report:
    """What a tick brought: minutes that closed, some that are open as they stand, a pulse if it was time.

    ``left_out`` probes of the closed minutes told of this process, not of their brokers; ``pending``
    changes of the probe topic are due and will not be made; ``outcomes`` counts what cold questions to
    brokers met, ``certificate_ends`` is until when the brokers' certificates are good, ``unreachable`` why
    the cluster does not say who its brokers are, ``throttled_s`` for how long brokers held probes back.
    """

    cluster_id: str
    closed: tuple[ProbeMinute, ...]
    still_open: tuple[ProbeMinute, ...]
    pulse: ProbePulse | None
    left_out: int
    pending: int
    outcomes: Mapping[tuple[int, str], int]
    certificate_ends: Mapping[int, datetime]
    unreachable: str | None
    throttled_s: Mapping[int, float]
