"""Avro schemas without their logical types, so that a value stays the number that was written."""

from typing import Any


def without_logical_types(schema: Any) -> Any:
    """Plain integers cannot overflow a datetime; fingerprints do not depend on it."""
    if isinstance(schema, dict):
        hidden = {"logicalType", "__fastavro_parsed__", "__named_schemas"}
        return {key: without_logical_types(value) for key, value in schema.items() if key not in hidden}
    if isinstance(schema, list):
        return [without_logical_types(one) for one in schema]
    return schema
