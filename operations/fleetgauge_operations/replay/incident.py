"""An incident as one file: the pulses and changes before and during it, and the findings that are expected.

A file is gzip over lines of JSON: a header, then the records in their wire encoding, so that a newer version
reads the files of an older one.
"""

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict

from fleetgauge_core.contract import ClusterChange, HealthEvent, ProbePulse, RecordDecodeError
from fleetgauge_core.detection import Finding, parse_finding
from fleetgauge_core.errors import OperationalError

_FORMAT = 1


class IncidentError(OperationalError):
    """A file that is not an incident or is damaged; the message is one line."""


class IncidentHeader(BaseModel):
    """The first line of an incident file."""

    model_config = ConfigDict(frozen=True)
    fleetgauge_incident: int = _FORMAT
    cluster: str
    since: AwareDatetime
    until: AwareDatetime
    note: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident of one cluster from ``since`` to ``until``; earlier pulses establish usual latencies."""

    cluster_id: str
    since: datetime
    until: datetime
    note: str
    pulses: tuple[ProbePulse, ...]
    """In the order in which they were emitted."""
    expected: tuple[Finding, ...]
    """The findings that are to open and clear from ``since`` on, by time; none for a false alarm."""
    changes: tuple[ClusterChange, ...] = ()
    """What changed meanwhile, in the order of the begins; no detection rests on it."""

    def write(self, path: Path) -> None:
        """Write the incident to a file; equal incidents give equal files. Raises: OSError."""
        header = IncidentHeader(cluster=self.cluster_id, since=self.since, until=self.until, note=self.note)
        lines = [
            header.model_dump_json(),
            *(json.dumps({"pulse": b64encode(pulse.encode()).decode()}) for pulse in self.pulses),
            *(json.dumps({"event": b64encode(finding.event.encode()).decode()}) for finding in self.expected),
            *(json.dumps({"change": b64encode(change.encode()).decode()}) for change in self.changes),
        ]
        # By default, gzip adds the time at which the file is written.
        path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))

    @classmethod
    def read(cls, path: Path) -> "Incident":
        """Return the incident in a file. Raises: IncidentError."""
        try:
            return cls._parse(gzip.decompress(path.read_bytes()).decode())
        except gzip.BadGzipFile as error:
            raise IncidentError(
                f"{path}: not an incident file; write one with `fleetgauge replay export`"
            ) from error
        except OSError as error:
            raise IncidentError(f"{path}: {error.strerror or error}") from error
        except (RecordDecodeError, EOFError, zlib.error, ValueError, TypeError) as error:
            raise IncidentError(f"{path}: damaged, or written by a newer version of fleetgauge") from error

    @classmethod
    def _parse(cls, text: str) -> "Incident":
        first, *lines = text.split("\n")
        header, records = IncidentHeader.model_validate_json(first), [json.loads(line) for line in lines]
        if header.fleetgauge_incident != _FORMAT:
            raise ValueError(f"format {header.fleetgauge_incident}")

        def values(name: str) -> list[bytes]:
            return [b64decode(record[name]) for record in records if name in record]

        events = map(HealthEvent.decode, values("event"))
        return cls(
            cluster_id=header.cluster,
            since=header.since,
            until=header.until,
            note=header.note,
            pulses=tuple(map(ProbePulse.decode, values("pulse"))),
            expected=tuple(finding for event in events if (finding := parse_finding(event))),
            changes=tuple(map(ClusterChange.decode, values("change"))),
        )
