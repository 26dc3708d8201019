"""Base class of all parts of fleet.yaml."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """An immutable model that rejects unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
