"""MirrorMaker 2's offset syncs as it writes them, made by hand from Kafka's own types."""

from struct import pack


def text(value: str) -> bytes:
    encoded = value.encode()
    return pack(">h", len(encoded)) + encoded


def encode_offset_sync(topic: str, partition: int, upstream: int, downstream: int) -> tuple[bytes, bytes]:
    """Key and value."""
    return text(topic) + pack(">i", partition), pack(">qq", upstream, downstream)
