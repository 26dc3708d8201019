"""The JSON Schema of fleet.yaml, for editors."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from fleetgauge_core.fleet.model import Fleet


class _EditorSchemaGenerator(GenerateJsonSchema):
    """Omits the titles that pydantic derives from key names, because editors would show them."""

    # The newest dialect that yaml-language-server supports completely.
    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (pydantic's signature)
        return False

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        return {"$schema": self.schema_dialect} | super().generate(schema, mode)


def fleet_json_schema() -> str:
    """Return the JSON Schema as text.

    It checks keys one by one; only ``load_fleet`` checks that ids are unique and tiers exist.
    """
    return json.dumps(Fleet.model_json_schema(schema_generator=_EditorSchemaGenerator), indent=2) + "\n"
