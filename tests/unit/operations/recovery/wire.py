"""MirrorMaker 2's records as it writes them, made by hand from Kafka's own types."""

from struct import pack


def text(value: str) -> bytes:
    encoded = value.encode()
    return pack(">h", len(encoded)) + encoded


def encode_offset_sync(topic: str, partition: int, upstream: int, downstream: int) -> tuple[bytes, bytes]:
    """Key and value."""
    return text(topic) + pack(">i", partition), pack(">qq", upstream, downstream)


def encode_group_checkpoint(
    group: str, topic: str, partition: int, upstream: int, downstream: int, metadata: str
) -> tuple[bytes, bytes]:
    """Key and value."""
    value = pack(">hqq", 0, upstream, downstream) + text(metadata)
    return text(group) + text(topic) + pack(">i", partition), value


def encode_heartbeat(source: str, target: str, timestamp_ms: int) -> tuple[bytes, bytes]:
    """Key and value."""
    return text(source) + text(target), pack(">hq", 0, timestamp_ms)
