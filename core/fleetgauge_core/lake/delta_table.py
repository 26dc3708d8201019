"""A Delta table by delta-rs; credentials and endpoints come from the environment by the names it knows."""

import re
from collections.abc import Mapping

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from fleetgauge_core.tables import Table, Type

#: A column as delta-rs reads and writes it.
ARROW: Mapping[Type, pa.DataType] = {
    Type.STRING: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.DOUBLE: pa.float64(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.BINARY: pa.binary(),
    Type.INTS: pa.list_(pa.int32()),
    Type.COUNTS: pa.map_(pa.string(), pa.int32()),
}

#: What deltalake and arrow raise for a table that cannot be read.
BROKEN = (DeltaError, pa.ArrowException, OSError)

#: Its own patience, three minutes, is longer than a page's or a person's.
_PATIENCE: Mapping[str, str] = {"max_retries": "3", "retry_timeout": "10s", "connect_timeout": "5s"}

#: What an object store's answers mean, by what is told apart first. Its own texts may quote a key.
_ANSWERS: tuple[tuple[str, str], ...] = (
    ("NoSuchBucket", "there is no such bucket: check the lake's URI"),
    (
        "URL scheme is not allowed",
        "plain http is refused: set AWS_ALLOW_HTTP=true, or name an https endpoint",
    ),
    ("169\\.254\\.169\\.254", "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    (
        "InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ExpiredToken|InvalidToken|40[13] \\w+",
        "the object store refuses the credentials: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
        "AWS_SESSION_TOKEN and the rights that they have",
    ),
    (
        "client error \\(Connect\\)|dns error|operation timed out|error sending request",
        "the object store does not answer: check AWS_ENDPOINT_URL, AWS_REGION and the network",
    ),
)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
#: Delta-rs appends a numbered stack, an object store a document: neither helps here.
_TAIL = re.compile(r"\s0: |<\?xml|<Error>")
_LONGEST = 240


def schema(table: Table) -> pa.Schema:
    return pa.schema([(column.name, ARROW[column.type]) for column in table.columns])


def open_table(lake: str, table: Table) -> DeltaTable | None:
    """The table as it is now, None while there is none. Raises one of BROKEN where that cannot be told."""
    place = uri(lake, table)
    try:
        return DeltaTable(place, storage_options=storage_options(place))
    except TableNotFoundError:
        return None


def is_there(lake: str, table: Table) -> bool:
    """Whether there is a log, as there was when the table was opened. Raises one of BROKEN."""
    place = uri(lake, table)
    return bool(DeltaTable.is_deltatable(place, storage_options=storage_options(place)))


def uri(lake: str, table: Table) -> str:
    """Where the table lies."""
    return f"{lake.rstrip('/')}/{table.path}"


def storage_options(place: str) -> dict[str, str] | None:
    """How long to try an object store; credentials and endpoints come from the environment."""
    return dict(_PATIENCE) if "://" in place else None


def reason(error: Exception) -> str:
    """Why a table cannot be read, in one line."""
    text = " ".join(_COLOUR.sub("", str(error)).split())
    for pattern, meaning in _ANSWERS:
        if re.search(pattern, text):
            return meaning
    said = _TAIL.split(text)[0].strip() or type(error).__name__
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
