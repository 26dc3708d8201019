"""What a notifier is given by its watch."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_pipelines.detection import Finding

#: How long a notifier may take to say what waits when the watch ends.
LAST_WORDS_S = 30


@dataclass(frozen=True, slots=True)
class Telling:
    """For one notifier."""

    clock: Callable[[], datetime]
    may_tell: Callable[[], bool]
    """Whether this watch is still the one that tells; may take seconds where that must be found out."""
    waits: Callable[[int], None]
    """So many more findings wait, or fewer."""
    heard: Callable[[], datetime | None]
    """When the last pulse of any cluster was made that this watch has heard."""
    dealt_with: Callable[[Finding, bool], None]
    """A finding was taken, or else given up: either way it need not be told again."""
    put_off: Callable[[Finding], None]
    """A finding is not told now, nor are those after it held up by it."""
