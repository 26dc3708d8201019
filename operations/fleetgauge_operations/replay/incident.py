"""An incident as one file: what the agents said before and meanwhile, and what was to be named.

A file is gzip over lines of JSON: a header, then the records as they were on the wire, so that a newer
version reads what an older one wrote.
"""

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict

from fleetgauge_core.contract import HealthEvent, ProbePulse, RecordDecodeError
from fleetgauge_core.detection import Finding, parse_finding

SUFFIX = ".incident.gz"
_FORMAT = 1


class IncidentError(Exception):
    """A file that is none of ours or is damaged, in one line."""


class IncidentHeader(BaseModel):
    """The first line."""

    model_config = ConfigDict(frozen=True)
    fleetgauge_incident: int = _FORMAT
    cluster: str
    since: AwareDatetime
    until: AwareDatetime
    note: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """One cluster from ``since`` to ``until``. Pulses begin before, so that the fold knows what is usual."""

    cluster_id: str
    since: datetime
    until: datetime
    note: str
    pulses: tuple[ProbePulse, ...]
    """In the order in which they were made."""
    wanted: tuple[Finding, ...]
    """What is to be named and cleared from ``since`` on, in time's order; nothing for a false alarm."""

    def write(self, path: Path) -> None:
        """Raises OSError."""
        header = IncidentHeader(cluster=self.cluster_id, since=self.since, until=self.until, note=self.note)
        lines = [
            header.model_dump_json(),
            *(json.dumps({"pulse": b64encode(one.encode()).decode()}) for one in self.pulses),
            *(json.dumps({"event": b64encode(one.event.encode()).decode()}) for one in self.wanted),
        ]
        # Without a time in it: the same incident is the same file.
        path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))

    @classmethod
    def read(cls, path: Path) -> "Incident":
        """Raises IncidentError."""
        try:
            return cls._parsed(gzip.decompress(path.read_bytes()).decode())
        except gzip.BadGzipFile as error:
            raise IncidentError(f"{path}: not an incident; `fleetgauge replay export` makes one") from error
        except OSError as error:
            raise IncidentError(f"{path}: {error.strerror or error}") from error
        except (RecordDecodeError, EOFError, zlib.error, ValueError, TypeError) as error:
            raise IncidentError(f"{path}: damaged, or of a newer version of fleetgauge") from error

    @classmethod
    def _parsed(cls, text: str) -> "Incident":
        first, *lines = text.split("\n")
        header, records = IncidentHeader.model_validate_json(first), [json.loads(line) for line in lines]
        if header.fleetgauge_incident != _FORMAT:
            raise ValueError(f"format {header.fleetgauge_incident}")
        pulses = [ProbePulse.decode(b64decode(one["pulse"])) for one in records if "pulse" in one]
        events = [HealthEvent.decode(b64decode(one["event"])) for one in records if "event" in one]
        wanted = tuple(one for event in events if (one := parse_finding(event)))
        return cls(header.cluster, header.since, header.until, header.note, tuple(pulses), wanted)
