"""Brokers that librdkafka itself plays: confluent-kafka's wheel carries them, but no Python call for them.

They live in threads of this process, so what an agent in another one takes is its own.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

_PRODUCER = 0
_SAID_BYTES = 512


@contextmanager
def mock_cluster(brokers: int, topic: str) -> Iterator[str]:
    """Gives the bootstrap of brokers 1 to n until the block is left; broker i has partition i - 1 alone."""
    library = _library()
    said = ctypes.create_string_buffer(_SAID_BYTES)
    settings = library.rd_kafka_conf_new()
    # The client carries the brokers and has nobody to talk to, which is no news.
    library.rd_kafka_conf_set(settings, b"log_level", b"3", said, _SAID_BYTES)
    client = library.rd_kafka_new(_PRODUCER, settings, said, _SAID_BYTES)
    if not client:
        raise RuntimeError(said.value.decode())
    cluster = library.rd_kafka_mock_cluster_new(client, brokers)
    try:
        failed = library.rd_kafka_mock_topic_create(cluster, topic.encode(), brokers, 1)
        if failed:
            raise RuntimeError(f"the mock cluster makes no topic: error {failed}")
        library.rd_kafka_mock_set_controller_id(cluster, 1)
        addresses: bytes = library.rd_kafka_mock_cluster_bootstraps(cluster)
        yield ",".join(addresses.decode().split(",")[:3])
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)


def _library() -> ctypes.CDLL:
    libraries = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(libraries.glob("librdkafka-*"))))
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    signatures = {
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_conf_set": (number, [pointer, text, text, text, ctypes.c_size_t]),
        "rd_kafka_new": (pointer, [number, pointer, text, ctypes.c_size_t]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, number]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_set_controller_id": (number, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_topic_create": (number, [pointer, text, number, number]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
