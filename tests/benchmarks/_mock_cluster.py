"""Runs librdkafka's mock brokers; confluent-kafka's wheel contains them, but no Python interface to them.

They run in threads of this process, so that an agent in another process is measured without them.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

_PRODUCER = 0
_ERROR_BYTES = 512


@contextmanager
def run_mock_cluster(brokers: int, topic: str) -> Iterator[str]:
    """Run brokers 1 to n within the block and yield their addresses; broker i has only partition i - 1."""
    library = _load_library()
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    settings = library.rd_kafka_conf_new()
    # The client that owns the mock brokers connects to none itself, and would log that.
    library.rd_kafka_conf_set(settings, b"log_level", b"3", error, _ERROR_BYTES)
    client = library.rd_kafka_new(_PRODUCER, settings, error, _ERROR_BYTES)
    if not client:
        raise RuntimeError(error.value.decode())
    cluster = library.rd_kafka_mock_cluster_new(client, brokers)
    try:
        code = library.rd_kafka_mock_topic_create(cluster, topic.encode(), brokers, 1)
        if code:
            raise RuntimeError(f"the mock cluster did not create the topic: error {code}")
        library.rd_kafka_mock_set_controller_id(cluster, 1)
        addresses: bytes = library.rd_kafka_mock_cluster_bootstraps(cluster)
        yield ",".join(addresses.decode().split(",")[:3])
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)


def _load_library() -> ctypes.CDLL:
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
