"""What to decide before a failback to a recovered cluster (after Confluent Replicator's procedure)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetgauge_operations.recovery.offsets.checkpoint import LogRange


@dataclass(frozen=True, slots=True)
class OffsetSpan:
    """The offsets from ``first`` to before ``end``."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class StrandedRecords:
    """Records of the primary cluster that were never replicated to the secondary."""

    count: int
    bytes: int
    first_ms: int
    """Timestamp of the oldest record, in milliseconds since the epoch."""
    last_ms: int
    """Timestamp of the youngest record, in milliseconds since the epoch."""
    offsets: tuple[int, ...]
    """The first offsets, as a sample; record contents are not shown."""


NO_STRANDED_RECORDS = StrandedRecords(0, 0, 0, 0, ())


@dataclass(frozen=True, slots=True)
class PartitionFailback:
    """What one partition holds at both ends of the mirror.

    ``at_risk`` are the primary's records that are not known to be replicated; ``stranded`` are those of them
    that the secondary lacks, None if they were not compared. ``new`` are the secondary's records written
    since the failover.
    """

    topic: str
    partition: int
    at_risk: OffsetSpan
    stranded: StrandedRecords | None
    new: OffsetSpan | None

    @property
    def stranded_at_most(self) -> int:
        """The number of stranded records; all at risk if they were not compared."""
        return self.stranded.count if self.stranded else len(self.at_risk)


@dataclass(frozen=True, slots=True)
class FailbackReport:
    """What a failback from the secondary to the primary cluster has to deal with.

    ``ordered`` are the topics in which the order of a key's records matters (compacted topics), so that a
    stranded record must not be replicated late.
    """

    primary: str
    secondary: str
    names_kept: bool
    partitions: tuple[PartitionFailback, ...]
    ordered: tuple[str, ...]

    @property
    def stranded(self) -> int:
        """The number of stranded records, including all records at risk that were not compared."""
        return sum(partition.stranded_at_most for partition in self.partitions)

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the failback, in order, for an operator."""
        return tuple(_list_steps(self))


def find_span_at_risk(replicated: int | None, primary: LogRange) -> OffsetSpan:
    """Return the primary's offsets that are not replicated.

    ``replicated`` is the last offset known to be replicated; None if none is.
    """
    return OffsetSpan(primary.start if replicated is None else primary.clamp(replicated + 1), primary.end)


def span_since_failover(failover: int, secondary: LogRange) -> OffsetSpan:
    """Return the secondary's offsets written since the failover; ``failover`` is its end offset then."""
    return OffsetSpan(secondary.clamp(failover), secondary.end)


def _list_steps(report: FailbackReport) -> Iterator[str]:
    forward = f"{report.primary} to {report.secondary}"
    backward = f"{report.secondary} to {report.primary}"
    out_of_order = [
        partition.topic
        for partition in report.partitions
        if partition.topic in report.ordered and partition.stranded_at_most > 0
    ]
    if out_of_order:
        yield (
            f"decide manually about {_join_names(out_of_order)}: its stranded records are older than the "
            "records written since the failover, and would be appended after them"
        )
    if report.stranded:
        yield f"run the mirror {forward} until no record is stranded: {report.stranded:,} records"
    yield f"stop the producers of {report.secondary}, and let the mirror {forward} catch up"
    if report.names_kept:
        yield (
            f"stop the mirror {forward}: two mirrors in opposite directions that keep topic names would "
            "replicate records in a loop"
        )
    new = sum(len(partition.new) for partition in report.partitions if partition.new)
    if new:
        yield f"mirror {backward} from the offsets above: {new:,} new records"
    yield f"write groups' offsets: fleetgauge recover sync, with active and passive exchanged ({backward})"
    yield f"move consumers to {report.primary}, then producers, then restart the mirror {forward}"


def _join_names(topics: Sequence[str]) -> str:
    return ", ".join(sorted(set(topics)))
