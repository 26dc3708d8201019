"""Offset syncs as MirrorMaker 2 writes them, encoded independently of the code under test."""

from struct import pack


def encode_string(value: str) -> bytes:
    encoded = value.encode()
    return pack(">h", len(encoded)) + encoded


def encode_offset_sync(topic: str, partition: int, upstream: int, downstream: int) -> tuple[bytes, bytes]:
    """Return key and value of the record."""
    return encode_string(topic) + pack(">i", partition), pack(">qq", upstream, downstream)
