"""What every part of fleet.yaml is: a value that knows its keys and never changes."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
