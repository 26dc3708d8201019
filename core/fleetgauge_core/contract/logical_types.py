"""Avro schemas without their logical types, so that timestamps are read as the integers that were written."""

from typing import Any


def strip_logical_types(schema: Any) -> Any:
    """Return a copy of an Avro schema, parsed from JSON or by fastavro, without its logical types.

    A damaged timestamp may lie outside the range of datetime; as a plain integer it can still be
    decoded. The canonical form of a schema, and so its fingerprint, does not contain logical types.
    """
    if isinstance(schema, dict):
        hidden = {"logicalType", "__fastavro_parsed__", "__named_schemas"}
        return {key: strip_logical_types(value) for key, value in schema.items() if key not in hidden}
    if isinstance(schema, list):
        return [strip_logical_types(branch) for branch in schema]
    return schema
